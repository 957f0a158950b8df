// Reads the wire format of protocol buffers (protobuf.dev/programming-guides/encoding): a message
// is a list of fields, each a number and a value. What the numbers mean is for the caller to know;
// a message within a message is a field of bytes. Not thread-safe.
#ifndef OUTRIDER_IO_PROTOBUF_H_
#define OUTRIDER_IO_PROTOBUF_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace outrider {

class ProtobufReader {
 public:
  // `bytes` is one message, `place` names it in errors; both must outlive this.
  ProtobufReader(std::string_view bytes, std::string_view place) : rest_(bytes), place_(place) {}

  // Goes on to the next field; false behind the last. Throws Error if what follows is no field, is
  // cut off, or is a group (which messages have not had for long).
  bool next();

  // The current field. Its value is an Error if it is stored as another type than that asked for,
  // or does not fit it.
  std::uint32_t number() const { return number_; }
  std::string_view bytes() const;
  std::int32_t integer() const;
  bool boolean() const;
  float real() const;
  // Where it stands, for errors: "PLACE: field 3".
  std::string where() const;

 private:
  // By their numbers in the format.
  enum class Type : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  std::uint64_t take_varint();
  std::string_view take(std::uint64_t n_bytes);
  void require(Type type, std::string_view expected) const;

  std::string_view rest_;
  std::string_view place_;
  std::uint32_t number_ = 0;
  Type type_ = Type::kVarint;
  std::uint64_t integer_ = 0;  // of a varint
  std::string_view bytes_;     // of the other types
};

}  // namespace outrider

#endif  // OUTRIDER_IO_PROTOBUF_H_
