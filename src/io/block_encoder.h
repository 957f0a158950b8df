// Floats to GGUF's quantised blocks. Each type's rounding:
//
//   q8_0, q4_0, q5_0, q5_1: that of the Python package gguf (and of llama.cpp without an importance
//     matrix), to the bit. The scale is largest / 127 (q8_0), or what makes the element of largest
//     magnitude, the first of them, the code of largest magnitude (q4_0: -8, q5_0: -16), or
//     (largest - least) / 31 with the least as minimum (q5_1). Codes are rounded by the scale in
//     f32, to nearest, ties away from zero in q8_0 and up in the others; then the scale is rounded
//     to f16. A block whose scale has no finite reciprocal (below 2^-128) is zeros.
//   q4_k, q5_k, q6_k: a search for the scales and codes that come nearest, io/super_block_fit.h.
//   f16: to nearest, ties to even.
//
// The same floats give the same bytes on every machine. Thread-safe.
#ifndef OUTRIDER_IO_BLOCK_ENCODER_H_
#define OUTRIDER_IO_BLOCK_ENCODER_H_

#include <cstddef>
#include <span>

#include "io/tensor_source.h"

namespace outrider {

// Whether encode_blocks() knows the type: those above.
bool can_encode(ElementType type);

// The largest magnitude that such a type is given here: 65504, the largest f16, times the largest
// magnitude of a code (1 in f16 and q5_1, whose minimum is an f16 by itself). No scale overflows.
float largest_encodable(ElementType type);

// The place of the first value that no block of this type holds: NaN, an infinity, or beyond
// largest_encodable(). The number of values if there is none.
std::size_t first_unencodable(ElementType type, std::span<const float> values);

// values: whole blocks, all encodable. out: their bytes. (Precondition: the type is known and sizes
// agree.)
void encode_blocks(ElementType type, std::span<const float> values, std::span<std::byte> out);

}  // namespace outrider

#endif  // OUTRIDER_IO_BLOCK_ENCODER_H_
