// SPDX-License-Identifier: Apache-2.0
// Builders of small safetensors, GGUF and SentencePiece files in memory, for tests and fuzz corpora
// only. They do not check their input, so that invalid files are as easy to build as valid ones.
#ifndef OUTRIDER_IO_TEST_FILES_H_
#define OUTRIDER_IO_TEST_FILES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace outrider::test {

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
  std::uint64_t alignment = 32;  // the padding of the data; not written as a key

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
  // An entry whose bytes after the type are given.
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
  // A tensor header without data.
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
  // With given counts in the header, right or wrong.
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

// A message of protocol buffers, field by field.
class Protobuf {
 public:
  Protobuf& integer(std::uint32_t number, std::int64_t value) {
    varint(std::uint64_t{number} << 3);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Protobuf& real(std::uint32_t number, float value) {
    varint(std::uint64_t{number} << 3 | 5);
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    bytes_.append(bytes, sizeof(value));
    return *this;
  }
  Protobuf& text(std::uint32_t number, std::string_view value) {
    varint(std::uint64_t{number} << 3 | 2);
    varint(value.size());
    bytes_.append(value);
    return *this;
  }
  // A message within this one.
  Protobuf& message(std::uint32_t number, const Protobuf& value) {
    return text(number, value.bytes());
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  std::string bytes_;
};

// A SentencePiece model: pieces, then the normaliser's rules.
class SentencePieces {
 public:
  // type: 1 ordinary, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 a byte
  SentencePieces& piece(std::string_view text, float score, int type = 1) {
    Protobuf piece;
    piece.text(1, text).real(2, score);
    if (type != 1) piece.integer(3, type);
    model_.message(1, piece);
    return *this;
  }
  SentencePieces& trainer(const Protobuf& spec) {
    model_.message(2, spec);
    return *this;
  }
  SentencePieces& normalizer(const Protobuf& spec) {
    model_.message(3, spec);
    return *this;
  }
  const std::string& bytes() const { return model_.bytes(); }

 private:
  Protobuf model_;
};

// A table of character rewrites (src/tokenizer/formats/charsmap.h): a tree in the simplest layout,
// where each unit's children have a separate block of 256.
inline std::string charsmap(const std::vector<std::pair<std::string, std::string>>& rules) {
  struct Node {
    std::vector<std::pair<unsigned char, std::size_t>> children;
    std::ptrdiff_t text = -1;
  };
  std::vector<Node> nodes(1);
  std::string texts;
  for (const auto& [from, to] : rules) {
    std::size_t node = 0;
    for (const char c : from) {
      const auto byte = static_cast<unsigned char>(c);
      std::size_t next = 0;
      for (const auto& [label, child] : nodes[node].children) {
        if (label == byte) next = child;
      }
      if (next == 0) {
        next = nodes.size();
        nodes[node].children.emplace_back(byte, next);
        nodes.emplace_back();
      }
      node = next;
    }
    nodes[node].text = static_cast<std::ptrdiff_t>(texts.size());
    texts.append(to).push_back('\0');
  }
  // The children of node n are at 256 (n + 1) ^ label, its value at 256 (n + 1).
  std::vector<std::uint32_t> units(256 * (nodes.size() + 1));
  const auto fill = [&](std::size_t at, unsigned char label, std::size_t node) {
    const auto base = static_cast<std::uint32_t>(256 * (node + 1));
    const auto offset = static_cast<std::uint32_t>(at) ^ base;
    // An offset has 21 bits, or is 256 times as large; with bits below 8 it does not fit the second
    // form.
    units[at] = offset << 10 | (nodes[node].text >= 0 ? 0x100u : 0u) | label;
  };
  fill(0, 0, 0);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const std::size_t base = 256 * (node + 1);
    if (nodes[node].text >= 0) {
      units[base] = static_cast<std::uint32_t>(nodes[node].text) | std::uint32_t{1} << 31;
    }
    for (const auto& [label, child] : nodes[node].children) fill(base ^ label, label, child);
  }
  Bytes bytes;
  append(bytes, static_cast<std::uint32_t>(units.size() * sizeof(std::uint32_t)));
  for (const std::uint32_t unit : units) append(bytes, unit);
  std::string table(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return table + texts;
}

}  // namespace outrider::test

#endif  // OUTRIDER_IO_TEST_FILES_H_
