// SPDX-License-Identifier: Apache-2.0
// Code shared by the functions that make steps.
#ifndef OUTRIDER_DEVICE_MAKE_STEP_H_
#define OUTRIDER_DEVICE_MAKE_STEP_H_

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "device/step.h"

namespace outrider::device {

// Invocations per workgroup (shaders/*.comp).
inline constexpr std::uint32_t kLanesOfGroup = 64;

constexpr std::uint32_t parts_of(std::uint32_t n, std::uint32_t part) {
  return (n + part - 1) / part;
}

constexpr std::uint32_t word(int n) { return static_cast<std::uint32_t>(n); }

inline Use reads(const Range& range) { return {range, Access::read}; }
inline Use writes(const Range& range) { return {range, Access::write}; }
inline Use changes(const Range& range) { return {range, Access::read_write}; }

template <class Numbers>
Step step_of(Kernel kernel, std::vector<Use> uses, const Numbers& numbers) {
  Step step{.kernel = kernel, .uses = std::move(uses)};
  static_assert(sizeof numbers <= sizeof step.numbers);
  std::memcpy(step.numbers.data(), &numbers, sizeof numbers);
  return step;
}

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_MAKE_STEP_H_
