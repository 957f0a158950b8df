// Scales and codes for blocks of 256 elements, found by search: what comes nearest to given floats
// in GGUF's types with sub-scales.
//
// Nearest means the least sum of squares of value - x, all elements alike. (Weights that grow with
// |x|, as llama.cpp has them, are no better: of the shipped target with q4_k throughout, its
// channels in six random orders, the laws of tokens diverge from those of the weights in f32 by
// 0.01467 nats, with weights of |x| plus once the root mean square 0.01484, plus three times that
// 0.01476, all
// +- 0.0001; by llama.cpp's blocks 0.01538.)
//
// 1. Each group by itself, scales as real numbers: the codes of the group are spread over its range
//    in some ways, each gives a least-squares fit of step (and minimum), and the best of these is
//    repeated from its own codes for as long as it gets better.
// 2. The block's f16 scales are those whose multiples come nearest to these steps (and minimums).
// 3. Each group's integers are the best of the nearest and its neighbours, with the codes that are
//    nearest then.
// 4. With these integers and codes, the scales by least squares; from there 3 again. The best round
//    of three stands.
//
// Values are finite and at most largest_encodable() (io/block_encoder.h). A block whose values all
// are below half of what the type can show is zeros. All sums have one order: the same bits on
// every machine. Thread-safe.
#ifndef OUTRIDER_IO_SUPER_BLOCK_FIT_H_
#define OUTRIDER_IO_SUPER_BLOCK_FIT_H_

#include "io/block_formats.h"

namespace outrider {

// q4_k (top_code 15) and q5_k (31): value = scale * sub_scale * code - minimum * sub_minimum in
// groups of 32, codes from 0 to top_code, sub-scales and sub-minimums from 0 to 63. values: 256.
void fit_with_minimums(const float* values, int top_code, BlockParts& parts);

// q6_k: value = scale * sub_scale * (code - 32) in groups of 16, codes from 0 to 63, sub-scales
// from -128 to 127. values: 256.
void fit_signed(const float* values, BlockParts& parts);

}  // namespace outrider

#endif  // OUTRIDER_IO_SUPER_BLOCK_FIT_H_
