// SPDX-License-Identifier: Apache-2.0
#include "measure/tuning/profile_passes.h"

#include <cstdint>
#include <utility>

#include "measure/text_beginnings.h"

namespace outrider {
namespace {

// Memory bandwidth is not needed.
constexpr std::int64_t kNoReading = 4096;

}  // namespace

std::vector<TreeProfile::Pass> profile_passes(const Model& model, const ContinuedTexts& texts,
                                              std::vector<int> rows, int rounds,
                                              MeasureProgress progress) {
  const PassOptions options{.rows = std::move(rows),
                            .nodes = PassNodes::chain,
                            .context = static_cast<int>(middle_of(texts)),
                            .prefill = 0,
                            .rounds = rounds,
                            .read_bytes = kNoReading,
                            .progress = std::move(progress)};
  std::vector<TreeProfile::Pass> passes;
  for (const PassCost& pass : measure_passes(model, options).passes) {
    passes.push_back({.rows = pass.rows, .seconds = pass.seconds.median});
  }
  return passes;
}

}  // namespace outrider
