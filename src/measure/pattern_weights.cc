// SPDX-License-Identifier: Apache-2.0
#include "measure/pattern_weights.h"

#include <cstddef>
#include <vector>

#include "base/float16.h"

namespace outrider {

PatternWeights::PatternWeights(WeightKind kind, std::int64_t n_rows, std::int64_t k)
    : kind_(kind), n_rows_(n_rows), k_(k) {
  constexpr std::int64_t kTileRows = kernels::kTileColumns;
  std::vector<float> values(static_cast<std::size_t>(kTileRows * k));
  std::uint32_t state = 1;
  for (float& value : values) {
    // Numerical Recipes' generator; any that gives no subnormals would do.
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8) * 0x1p-24F - 0.5F;
  }
  if (kind <= WeightKind::int4) {
    quantize_weights(values, kTileRows, k, kind, rows_);
    return;
  }
  // File formats: the maximum of every kind of number that any of them has.
  const auto n_numbers = static_cast<std::size_t>(kTileRows * ((k + 15) / 16));
  for (const float value : values) rows_.codes.push_back(value < 0 ? 1 : 2);
  rows_.scales.assign(n_numbers, to_f16(0.01F).bits);
  rows_.minimums.assign(n_numbers, to_f16(0.02F).bits);
  rows_.sub_scales.assign(n_numbers, 5);
  rows_.sub_minimums.assign(n_numbers, 3);
  rows_.f32_scales.assign(n_numbers, 0.0625F);
}

void PatternWeights::read(std::int64_t, std::int64_t, WeightRows& rows) const { rows = rows_; }

}  // namespace outrider
