// SPDX-License-Identifier: Apache-2.0
// Searches scales and codes for blocks of 256 elements: the nearest values to given floats in
// GGUF's types with sub-scales.
//
// Nearest means the least sum of squares of value - x, with equal weights. (Weights that grow with
// |x|, as in llama.cpp, are no better. Measured on the shipped target with q4_k throughout, with
// its channels in six random orders, as divergence of token distributions from those of f32
// weights: equal weights 0.01467 nats, |x| plus once the root mean square 0.01484, plus three times
// that 0.01476, all +- 0.0001; llama.cpp's blocks 0.01538.)
//
// 1. For each group separately, with real scales: several ways spread the codes over the group's
// range. Each gives a least-squares fit of step (and minimum), and the best of these is repeated
// from its own codes as long as it improves.
//
// 2. The block's f16 scales are those whose multiples are nearest to these steps (and minimums).
//
// 3. Each group's integers are the best among the nearest and its neighbours, with the nearest
// codes.
//
// 4. With these integers and codes, the scales by least squares; then 3 again. The best of three
// rounds is taken.
//
// Values must be finite and at most largest_encodable() (io/blocks/block_encoder.h). A block whose
// values are all below half of the smallest magnitude of the type is zeros. All sums have one
// order: the same bits on every machine. Thread-safe.
#ifndef OUTRIDER_IO_BLOCKS_SUPER_BLOCK_FIT_H_
#define OUTRIDER_IO_BLOCKS_SUPER_BLOCK_FIT_H_

#include "io/blocks/block_formats.h"

namespace outrider {

// q4_k (top_code 15) and q5_k (31): value = scale * sub_scale * code - minimum * sub_minimum in
// groups of 32, codes from 0 to top_code, sub-scales and sub-minimums from 0 to 63. values: 256.
void fit_with_minimums(const float* values, int top_code, BlockParts& parts);

// q6_k: value = scale * sub_scale * (code - 32) in groups of 16, codes from 0 to 63, sub-scales
// from -128 to 127. values: 256.
void fit_signed(const float* values, BlockParts& parts);

}  // namespace outrider

#endif  // OUTRIDER_IO_BLOCKS_SUPER_BLOCK_FIT_H_
