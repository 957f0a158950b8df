// Softmax weights, logarithms and random numbers, many at once, by the fastest kernels this machine
// has. All tables give the bits of portable_exp and portable_log (base/elementary.h) and of
// CounterChance, so that which one it is shows in the time alone, and it need not be the one that a
// model was told to use. Thread-safe.
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

// The two uniform numbers of each block from index `first` on, as many blocks as fill `out`, whose
// length is even (counter_chance.h says what a block's counter is made of).
void philox_uniforms(std::uint64_t seed, std::int64_t position, std::uint32_t first,
                     std::uint32_t purpose, std::span<double> out);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_ROW_KERNELS_H_
