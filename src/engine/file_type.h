// GGUF's file types: which element type each tensor of a model takes in a file that is called
// q4_k_m or the like. The rule is llama.cpp's (llama-quantize 0.7 without an importance matrix), so
// that files of one name hold the same from either program; docs/models.md states it.
#ifndef OUTRIDER_ENGINE_FILE_TYPE_H_
#define OUTRIDER_ENGINE_FILE_TYPE_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "io/gguf.h"
#include "io/tensor_source.h"

namespace outrider {

struct FileType {
  std::string_view name;  // "q4_k_m"
  std::uint32_t number;   // general.file_type
  ElementType type;       // of most matrices
};

std::span<const FileType> file_types();
// Null if there is none of that name.
const FileType* find_file_type(std::string_view name);

struct PlannedTensor {
  ElementType type;    // that it is stored in already, or one that encode_blocks() writes
  ElementType wanted;  // the same, but for rows that are no whole blocks of it
};

// One for each of file.tensors(). Thread-safe.
std::vector<PlannedTensor> plan_tensors(const FileType& type, const GgufFile& file);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_FILE_TYPE_H_
