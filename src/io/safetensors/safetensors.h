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

// Maps one .safetensors file. Throws Error on anything malformed: short file, header length beyond
// the file or absurd, invalid JSON header, unknown dtype, negative or overflowing shapes, offsets
// that are reversed, outside, overlapping, leave holes or do not fit dtype x shape.
std::unique_ptr<TensorSource> open_safetensors(const std::filesystem::path& file);

// A Hugging Face directory: model.safetensors, or the shards named by model.safetensors.index.json.
// Throws Error if neither exists, a shard is missing, or the index and the shards disagree.
std::unique_ptr<TensorSource> open_safetensors_directory(const std::filesystem::path& directory);

// The same checks over bytes in memory (for fuzzing and tests); `bytes` must outlive the result.
std::unique_ptr<TensorSource> parse_safetensors(std::span<const std::byte> bytes,
                                                std::string description);

}  // namespace outrider

#endif  // OUTRIDER_IO_SAFETENSORS_SAFETENSORS_H_
