// Builders of small safetensors and GGUF files in memory, for tests, fuzz corpora and nothing else.
// They write whatever they are told: a wrong file is as easy to build as a right one.
#ifndef OUTRIDER_IO_TEST_FILES_H_
#define OUTRIDER_IO_TEST_FILES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace outrider::test_files {

using Bytes = std::vector<std::byte>;

inline Bytes to_bytes(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

inline void append(Bytes& to, std::string_view text) {
  const Bytes bytes = to_bytes(text);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

template <typename T>
requires std::is_arithmetic_v<T>
void append(Bytes& to, T value) {
  Bytes bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// `header` is the JSON text; its length is written in front of it, `data` after it.
inline Bytes safetensors(std::string_view header, const Bytes& data) {
  Bytes file;
  append(file, std::uint64_t{header.size()});
  append(file, header);
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

// Numbers of GGUF value types.
enum GgufType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

// Collects entries and tensors, then writes the file.
class Gguf {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  // what the data is padded to; not written as a key

  // A scalar of a type, given as T.
  template <typename T>
  Gguf& value(std::string_view key, std::uint32_t type, T stored) {
    start_key(key, type);
    append(entries_, stored);
    return *this;
  }
  Gguf& text(std::string_view key, std::string_view value) {
    start_key(key, kString);
    append_text(entries_, value);
    return *this;
  }
  template <typename T>
  Gguf& array(std::string_view key, std::uint32_t type, const std::vector<T>& values) {
    start_key(key, kArray);
    append(entries_, type);
    append(entries_, std::uint64_t{values.size()});
    for (std::size_t i = 0; i < values.size(); ++i) append(entries_, static_cast<T>(values[i]));
    return *this;
  }
  Gguf& texts(std::string_view key, const std::vector<std::string>& values) {
    start_key(key, kArray);
    append(entries_, std::uint32_t{kString});
    append(entries_, std::uint64_t{values.size()});
    for (const std::string& value : values) append_text(entries_, value);
    return *this;
  }
  // An entry whose bytes after the type are given as they are.
  Gguf& raw(std::string_view key, std::uint32_t type, const Bytes& bytes) {
    start_key(key, type);
    entries_.insert(entries_.end(), bytes.begin(), bytes.end());
    return *this;
  }

  // sizes: innermost first, as the file has them. The data goes to the next aligned offset.
  Gguf& tensor(std::string_view name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
               const Bytes& data) {
    pad(data_);
    claim(name, sizes, type, data_.size());
    data_.insert(data_.end(), data.begin(), data.end());
    return *this;
  }
  // A tensor header alone.
  Gguf& claim(std::string_view name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
              std::uint64_t offset) {
    ++n_tensors_;
    append_text(headers_, name);
    append(headers_, static_cast<std::uint32_t>(sizes.size()));
    for (const std::uint64_t size : sizes) append(headers_, size);
    append(headers_, type);
    append(headers_, offset);
    return *this;
  }

  Bytes bytes() const { return bytes(n_tensors_, n_entries_); }
  // With other counts in the header than there are.
  Bytes bytes(std::uint64_t n_tensors, std::uint64_t n_entries) const {
    Bytes file = to_bytes("GGUF");
    append(file, version);
    append(file, n_tensors);
    append(file, n_entries);
    file.insert(file.end(), entries_.begin(), entries_.end());
    file.insert(file.end(), headers_.begin(), headers_.end());
    if (!data_.empty()) {
      pad(file);
      file.insert(file.end(), data_.begin(), data_.end());
    }
    return file;
  }

  static void append_text(Bytes& to, std::string_view text) {
    append(to, std::uint64_t{text.size()});
    append(to, text);
  }

 private:
  void start_key(std::string_view key, std::uint32_t type) {
    ++n_entries_;
    append_text(entries_, key);
    append(entries_, type);
  }
  void pad(Bytes& bytes) const {
    while (bytes.size() % alignment != 0) bytes.push_back(std::byte{0});
  }

  Bytes entries_;
  Bytes headers_;
  Bytes data_;
  std::uint64_t n_entries_ = 0;
  std::uint64_t n_tensors_ = 0;
};

}  // namespace outrider::test_files

#endif  // OUTRIDER_IO_TEST_FILES_H_
