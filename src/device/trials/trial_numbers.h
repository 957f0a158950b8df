// SPDX-License-Identifier: Apache-2.0
// Random numbers for trials, the same on every machine.
#ifndef OUTRIDER_DEVICE_TRIALS_TRIAL_NUMBERS_H_
#define OUTRIDER_DEVICE_TRIALS_TRIAL_NUMBERS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "device/kernel_steps.h"

namespace outrider::device {

// The standard defines this engine's numbers, but not those of distributions.
class TrialNumbers {
 public:
  explicit TrialNumbers(std::uint32_t seed) : engine_(seed) {}

  std::uint32_t bits() { return static_cast<std::uint32_t>(engine_()); }
  int below(int n) { return static_cast<int>(bits() % static_cast<std::uint32_t>(n)); }
  float any_float() { return std::bit_cast<float>(bits()); }
  // Of either sign, 2^low <= |x| < 2^high; low at least -126.
  float of_size(int low, int high) {
    const std::uint32_t exponent = static_cast<std::uint32_t>(low + 127 + below(high - low));
    return std::bit_cast<float>((bits() & 0x807fffffU) | exponent << 23);
  }
  // Like activations, with some zeros, subnormals and large numbers.
  float awkward() {
    switch (below(32)) {
      case 0:
        return 0.0F;
      case 1:
        return std::bit_cast<float>(bits() & 0x807fffffU);
      case 2:
        return of_size(2, 9);
      default:
        return of_size(-6, 2);
    }
  }
  std::vector<float> awkward_floats(std::size_t n) {
    std::vector<float> all(n);
    for (float& one : all) one = awkward();
    return all;
  }

 private:
  std::mt19937 engine_;
};

// The number of rows, and the number for which a trial's program is recorded.
struct TrialRows {
  int n = 1;
  int max_rows = 1;

  std::vector<std::uint32_t> facts() const {
    std::vector<std::uint32_t> words(kFacts);
    words[kFactRows] = static_cast<std::uint32_t>(n);
    return words;
  }
};

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_TRIALS_TRIAL_NUMBERS_H_
