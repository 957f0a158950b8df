// GGUF's quantised blocks: where the numbers of one block stand, and what the elements are.
//
// A block holds a code of a few bits for each element, one or two scales in f16 and, in most types
// of 256 elements, a small integer for every group of elements beside them. split() takes them
// apart without rounding; decode_block() makes floats of them, in one order of float operations, so
// that the bits are those of the format's reference (the Python package gguf):
//
//   value = step * (code or what stands for it) [- or + minimum], each operation rounded to f32
//   step = scale, or scale * sub_scale; minimum = minimum, or minimum * sub_minimum
//
// All functions are thread-safe and read bytes of any alignment. Scales that are infinite or NaN
// give elements that are.
#ifndef OUTRIDER_IO_BLOCK_FORMATS_H_
#define OUTRIDER_IO_BLOCK_FORMATS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "io/tensor_source.h"

namespace outrider {

inline constexpr int kMostBlockElements = 256;
inline constexpr int kMostBlockGroups = 16;

// The numbers of one block. What a type does not have is left as it was.
struct BlockParts {
  std::array<std::uint8_t, kMostBlockElements> codes;  // in the order of the elements
  std::uint16_t scale;                                 // f16; mxfp4: an exponent (scale_of)
  std::uint16_t minimum;                               // f16
  std::array<std::int8_t, kMostBlockGroups> sub_scales;
  std::array<std::uint8_t, kMostBlockGroups> sub_minimums;
};

enum class BlockMinimum { none, added, subtracted };

struct BlockFormat {
  ElementType type;
  std::string_view name;
  int elements;          // of a block
  std::size_t bytes;     // of a block
  int group;             // elements that share a sub-scale; all of them where there are none
  bool has_sub_scales;   // and sub-minimums, where there are minimums
  BlockMinimum minimum;  // of the elements
  void (*split)(const std::byte* block, BlockParts& parts);
  std::array<std::int8_t, 256> values;  // what each code stands for
  bool power_of_two_scale = false;      // the scale is no f16 but an exponent
};

// Null for types that are no quantised blocks.
const BlockFormat* find_block_format(ElementType type);

// The scale as a float, exactly.
float scale_of(const BlockFormat& format, const BlockParts& parts);

// out (elements).
void decode_block(const BlockFormat& format, const std::byte* block, float* out);

}  // namespace outrider

#endif  // OUTRIDER_IO_BLOCK_FORMATS_H_
