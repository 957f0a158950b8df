// SPDX-License-Identifier: Apache-2.0
// Converts floats to GGUF's quantised blocks. Each type's rounding:
//
// - q8_0, q4_0, q5_0, q5_1: that of the Python package gguf (and of llama.cpp without an importance
//   matrix), to the bit. The scale is largest / 127 (q8_0). For q4_0 and q5_0 it maps the element
//   of largest magnitude, the first of them, to the code of largest magnitude (-8, -16). For q5_1
//   it is (largest - least) / 31 with the least as minimum. Codes are rounded by the scale in f32,
//   to nearest, ties away from zero in q8_0 and up in the others; then the scale is rounded to f16.
//   A block whose scale has no finite reciprocal (below 2^-128) is zeros.
// - q4_k, q5_k, q6_k: a search for the nearest scales and codes, io/blocks/super_block_fit.h.
// - f16: to nearest, ties to even.
//
// The same floats give the same bytes on every machine. Thread-safe.
#ifndef OUTRIDER_IO_BLOCKS_BLOCK_ENCODER_H_
#define OUTRIDER_IO_BLOCKS_BLOCK_ENCODER_H_

#include <cstddef>
#include <span>

#include "io/tensor_source.h"

namespace outrider {

// Whether encode_blocks() supports the type: those above.
bool can_encode(ElementType type);

// The largest magnitude that such a type can encode here: 65504, the largest f16, times the largest
// magnitude of a code (1 in f16 and q5_1, whose minimum is a separate f16). No scale overflows.
float largest_encodable(ElementType type);

// The index of the first value that a block of this type cannot hold: NaN, an infinity, or beyond
// largest_encodable(). The number of values if there is none.
std::size_t first_unencodable(ElementType type, std::span<const float> values);

// values: whole blocks, all encodable. out: their bytes. (Precondition: the type is known and sizes
// agree.)
void encode_blocks(ElementType type, std::span<const float> values, std::span<std::byte> out);

}  // namespace outrider

#endif  // OUTRIDER_IO_BLOCKS_BLOCK_ENCODER_H_
