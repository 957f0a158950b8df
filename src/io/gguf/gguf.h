// SPDX-License-Identifier: Apache-2.0
// Reader for GGUF version 3 (and 2, which does not differ in what is read): metadata and tensors.
#ifndef OUTRIDER_IO_GGUF_GGUF_H_
#define OUTRIDER_IO_GGUF_GGUF_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "io/tensor_source.h"

namespace outrider {

// A metadata value. Integers widen to int64 (a uint64 above its range becomes a double, so that
// reading it as an integer is an error), floats to double. Arrays are homogeneous; arrays of arrays
// are refused.
using GgufValue = std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>,
                               std::vector<double>, std::vector<bool>, std::vector<std::string>>;

class GgufFile : public TensorSource {
 public:
  // In file order.
  virtual std::span<const std::pair<std::string, GgufValue>> metadata() const = 0;
  // The raw bytes of each entry: key, type number, value. For copying.
  virtual std::span<const std::span<const std::byte>> entries() const = 0;
  virtual const GgufValue* find_metadata(std::string_view key) const = 0;
  // The opened files: several for a split one, none for bytes in memory.
  virtual std::vector<std::filesystem::path> files() const = 0;

  // Typed look-ups: nullopt (or null) if the key is absent; Error if it has another type.
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> real(std::string_view key) const;  // accepts integers too
  std::optional<bool> boolean(std::string_view key) const;
  const std::string* string(std::string_view key) const;
  const std::vector<std::string>* strings(std::string_view key) const;
  const std::vector<std::int64_t>* integers(std::string_view key) const;
  const std::vector<double>* reals(std::string_view key) const;
};

// Whether a regular file begins as GGUF files do, whatever its name. False if it cannot be read.
bool is_gguf(const std::filesystem::path& file);

// Maps a GGUF file, with or without tensors (vocabulary only). Throws Error on anything malformed:
// magic, version, counts and lengths beyond the file, duplicate keys or tensor names, more than 4
// dimensions, zero, negative or overflowing sizes, bad alignment, tensors that overlap or lie
// outside the file. A tensor of an unsupported type is foreign (TensorView): reading its values is
// an Error. A split file is opened by its first part; the others must be beside it under their
// names.
std::unique_ptr<GgufFile> open_gguf(const std::filesystem::path& file);

// The same over bytes in memory (for fuzzing and tests); `bytes` must outlive the result.
std::unique_ptr<GgufFile> parse_gguf(std::span<const std::byte> bytes, std::string description);

}  // namespace outrider

#endif  // OUTRIDER_IO_GGUF_GGUF_H_
