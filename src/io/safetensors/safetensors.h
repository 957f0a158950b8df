// SPDX-License-Identifier: Apache-2.0
// Reader for the safetensors format (8-byte little-endian header length, JSON header, data), as one
// file or as a Hugging Face sharded set with model.safetensors.index.json.
#ifndef OUTRIDER_IO_SAFETENSORS_SAFETENSORS_H_
#define OUTRIDER_IO_SAFETENSORS_SAFETENSORS_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "io/tensor_source.h"

namespace outrider {

// Maps one .safetensors file into memory. Throws Error for a file that cannot be mapped or is
// malformed:
// - shorter than the header length says, or a header above 100 MB (kLongestJson);
// - a header that is not the format's JSON, or that names a tensor twice;
// - a negative dimension, or a shape whose size overflows 63 bits;
// - data offsets that are reversed, outside the data, or unfit for dtype and shape;
// - tensors that overlap, or bytes that belong to none.
// An unknown dtype is no error: such a tensor has the type ElementType::foreign.
std::unique_ptr<TensorSource> open_safetensors(const std::filesystem::path& file);

// A Hugging Face directory: model.safetensors if it exists, else the shards that
// model.safetensors.index.json names. Throws Error as open_safetensors() does, and if both are
// missing, the index is malformed, or a shard lacks a tensor that the index places there. Tensors
// that the index does not name are ignored.
std::unique_ptr<TensorSource> open_safetensors_directory(const std::filesystem::path& directory);

// As open_safetensors(), from bytes in memory (for fuzzing and tests). `bytes` must outlive the
// result. `description` names them in error messages, as a path does.
std::unique_ptr<TensorSource> parse_safetensors(std::span<const std::byte> bytes,
                                                std::string description);

}  // namespace outrider

#endif  // OUTRIDER_IO_SAFETENSORS_SAFETENSORS_H_
