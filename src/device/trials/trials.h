// SPDX-License-Identifier: Apache-2.0
// Trials of every kernel, on random numbers and edge cases. A seed gives the same trial on every
// machine.
#ifndef OUTRIDER_DEVICE_TRIALS_TRIALS_H_
#define OUTRIDER_DEVICE_TRIALS_TRIALS_H_

#include <cstdint>

#include "device/kernel_steps.h"
#include "device/trials/trial.h"
#include "device/trials/trial_numbers.h"
#include "kernels/table.h"

namespace outrider::device {

// A function on all triples of edge values (as many operands as it reads) and on n_random others:
// with arbitrary bits, with similar sizes, and with much cancellation.
Trial arithmetic_trial(Function function, int n_random, std::uint32_t seed);

Trial quantize_trial(const TrialRows& rows, int k, std::uint32_t seed);
// Quantises rows first. kind: int8 or int4.
Trial product_trial(kernels::WeightKind kind, const TrialRows& rows, int n_columns, int k,
                    std::uint32_t seed);
// The same with the first 16 columns in one range and the others, at least one, in another.
Trial product_parts_trial(kernels::WeightKind kind, const TrialRows& rows, int n_columns, int k,
                          std::uint32_t seed);
Trial norm_trial(const TrialRows& rows, int n, std::uint32_t seed);
// With a bias: on picked rows; without: on all rows.
Trial layer_norm_trial(const TrialRows& rows, int n, bool has_bias, std::uint32_t seed);
Trial apply_rope_trial(const TrialRows& rows, int n_heads, int half, std::uint32_t seed);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_TRIALS_TRIALS_H_
