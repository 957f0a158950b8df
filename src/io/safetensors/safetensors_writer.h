// SPDX-License-Identifier: Apache-2.0
// Writer for the safetensors format.
#ifndef OUTRIDER_IO_SAFETENSORS_SAFETENSORS_WRITER_H_
#define OUTRIDER_IO_SAFETENSORS_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "io/tensor_source.h"

namespace outrider {

// A tensor to be written. Its values, row-major and as many as the shape says, must outlive the
// call; they are in one of the three spans.
struct NamedValues {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values = {};
  std::span<const std::int64_t> integers = {};
  std::span<const std::uint8_t> flags = {};  // 0 or 1
};

// Writes `tensors`: floats as f32 or bf16 (rounded to nearest, ties to even), integers as i64,
// flags as booleans, with the metadata that Hugging Face's readers require. They keep their order,
// except that integers come first and flags last, so that all are aligned to their size. The file
// appears whole or not at all. Throws Error if it cannot be written, a name occurs twice, a shape
// does not fit its values, or the type is another one.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedValues> tensors,
                       ElementType type);

}  // namespace outrider

#endif  // OUTRIDER_IO_SAFETENSORS_SAFETENSORS_WRITER_H_
