// SPDX-License-Identifier: Apache-2.0
// GGUF's quantised blocks: their layout, and the meaning of their numbers.
//
// A block holds a code of a few bits for each element and one or two scales in f16. Most types of
// 256 elements also have a small integer for every group of elements. split() separates them
// without rounding. decode_block() converts them to floats, in one order of float operations, with
// the bits of the format's reference (the Python package gguf):
//
//   value = step * (code or its table value) [- or + minimum], each operation rounded to f32
//   step = scale, or scale * sub_scale; minimum = minimum, or minimum * sub_minimum
//
// All functions are thread-safe and read bytes of any alignment. Infinite or NaN scales give such
// elements.
#ifndef OUTRIDER_IO_BLOCKS_BLOCK_FORMATS_H_
#define OUTRIDER_IO_BLOCKS_BLOCK_FORMATS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "io/tensor_source.h"

namespace outrider {

inline constexpr int kMaxBlockElements = 256;
inline constexpr int kMaxBlockGroups = 16;

// The numbers of one block. Members that a type does not have are left unchanged.
struct BlockParts {
  std::array<std::uint8_t, kMaxBlockElements> codes;  // in the order of the elements
  std::uint16_t scale;                                // f16; mxfp4: an exponent (scale_of)
  std::uint16_t minimum;                              // f16
  std::array<std::int8_t, kMaxBlockGroups> sub_scales;
  std::array<std::uint8_t, kMaxBlockGroups> sub_minimums;
};

enum class BlockMinimum { none, added, subtracted };

struct BlockFormat {
  ElementType type;
  std::string_view name;
  int elements;          // of a block
  std::size_t bytes;     // of a block
  int group;             // elements that share a sub-scale; all if there are none
  bool has_sub_scales;   // and sub-minimums, if there are minimums
  BlockMinimum minimum;  // of the elements
  void (*split)(const std::byte* block, BlockParts& parts);
  std::array<std::int8_t, 256> values;  // the value of each code
  bool power_of_two_scale = false;      // the scale is an exponent instead of an f16
};

// Null for types that are not quantised blocks.
const BlockFormat* find_block_format(ElementType type);

// The scale as a float, exactly.
float scale_of(const BlockFormat& format, const BlockParts& parts);

// out (elements).
void decode_block(const BlockFormat& format, const std::byte* block, float* out);

}  // namespace outrider

#endif  // OUTRIDER_IO_BLOCKS_BLOCK_FORMATS_H_
