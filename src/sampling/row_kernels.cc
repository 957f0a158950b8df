// SPDX-License-Identifier: Apache-2.0
#include "sampling/row_kernels.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/elementary.h"
#include "kernels/dispatch.h"

namespace outrider {
namespace {

// Queried once: detecting the processor's features is slow, most of all in a virtual machine.
const kernels::KernelTable& fastest() {
  static const kernels::KernelTable& table = kernels::best_table();
  return table;
}

bool is_normal_and_positive(double x) {  // NaN is not
  return x >= std::numeric_limits<double>::min() && x <= std::numeric_limits<double>::max();
}

}  // namespace

void philox_uniforms(std::uint64_t seed, std::int64_t position, std::uint32_t first,
                     std::uint32_t purpose, std::span<double> out) {
  fastest().philox_uniforms(seed, position, first, purpose, static_cast<int>(out.size() / 2),
                            out.data());
}

int softmax_weights(const kernels::SoftmaxArgs& args) { return fastest().softmax_weights(args); }

void logarithms(std::span<double> values) {
  // Small enough to stay in L1 between the check and the work.
  constexpr std::size_t kMaxTogether = 512;
  while (!values.empty()) {
    const std::span<double> block = values.first(std::min(kMaxTogether, values.size()));
    values = values.subspan(block.size());
    if (std::all_of(block.begin(), block.end(), is_normal_and_positive)) {
      fastest().logarithms(block.data(), static_cast<int>(block.size()));
    } else {
      for (double& x : block) x = portable_log(x);
    }
  }
}

}  // namespace outrider
