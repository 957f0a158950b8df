// SPDX-License-Identifier: Apache-2.0
// Reads the wire format of protocol buffers (protobuf.dev/programming-guides/encoding): a message
// is a list of fields, each a number and a value. The caller interprets the numbers; a nested
// message is a field of bytes. Not thread-safe.
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

  // Advances to the next field; false after the last. Throws Error if the input is not a field, is
  // truncated, or is a group (which are long deprecated).
  bool next();

  // The current field. Reading its value throws Error if it is stored as another type, or does not
  // fit.
  std::uint32_t number() const { return number_; }
  std::string_view bytes() const;
  std::int32_t integer() const;
  bool boolean() const;
  float real() const;
  // Its place, for errors: "PLACE: field 3".
  std::string where() const;

 private:
  // The numbers in the format.
  enum class Type : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  std::uint64_t take_varint();
  std::string_view take(std::uint64_t n_bytes);
  void require(Type type, std::string_view expected) const;

  std::string_view rest_;
  std::string_view place_;
  std::uint32_t number_ = 0;
  Type type_ = Type::kVarint;
  std::uint64_t integer_ = 0;  // for a varint
  std::string_view bytes_;     // for the other types
};

}  // namespace outrider

#endif  // OUTRIDER_IO_PROTOBUF_H_
