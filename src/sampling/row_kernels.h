// SPDX-License-Identifier: Apache-2.0
// Softmax weights, logarithms and random numbers for many values at once, by the fastest kernel
// table of this machine. All tables give the bits of portable_exp and portable_log
// (base/elementary.h) and of CounterChance. So the choice of table affects only time, and need not
// be the one that a model uses. Thread-safe.
#ifndef OUTRIDER_SAMPLING_ROW_KERNELS_H_
#define OUTRIDER_SAMPLING_ROW_KERNELS_H_

#include <cstdint>
#include <span>

#include "kernels/table.h"

namespace outrider {

// kernels::KernelTable::softmax_weights.
int softmax_weights(const kernels::SoftmaxArgs& args);

// In place; any values.
void logarithms(std::span<double> values);

// Fills `out`, whose length is even, with the two uniform numbers of each block from index `first`
// on (counter_chance.h describes a block's counter).
void philox_uniforms(std::uint64_t seed, std::int64_t position, std::uint32_t first,
                     std::uint32_t purpose, std::span<double> out);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_ROW_KERNELS_H_
