// SPDX-License-Identifier: Apache-2.0
// GGUF file types: the element type of each tensor in a file of type q4_k_m and the like. The rule
// is llama.cpp's (llama-quantize 0.7 without an importance matrix), so files of the same type hold
// the same from either program; docs/models.md describes it.
#ifndef OUTRIDER_ENGINE_FILES_FILE_TYPE_H_
#define OUTRIDER_ENGINE_FILES_FILE_TYPE_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "io/gguf/gguf.h"
#include "io/tensor_source.h"

namespace outrider {

struct FileType {
  std::string_view name;  // "q4_k_m"
  std::uint32_t number;   // general.file_type
  ElementType type;       // of most matrices
};

std::span<const FileType> file_types();
// Null for an unknown name.
const FileType* find_file_type(std::string_view name);

struct PlannedTensor {
  ElementType type;    // its present type, or one that encode_blocks() writes
  ElementType wanted;  // the same, unless rows are not whole blocks of it
};

// One for each of file.tensors(). Thread-safe.
std::vector<PlannedTensor> plan_tensors(const FileType& type, const GgufFile& file);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_FILES_FILE_TYPE_H_
