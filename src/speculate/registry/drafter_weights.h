// SPDX-License-Identifier: Apache-2.0
// The type of a drafter's weights in memory, if its spec names one.
#ifndef OUTRIDER_SPECULATE_REGISTRY_DRAFTER_WEIGHTS_H_
#define OUTRIDER_SPECULATE_REGISTRY_DRAFTER_WEIGHTS_H_

#include <optional>

#include "base/spec.h"
#include "kernels/table.h"
#include "model/load_model.h"

namespace outrider {

// A small drafter may spend most of a round on weights that need not be exact: with the rule
// `exact`, its drafts are verified in any case. Other rules use the distributions of the drafter
// with these weights.
struct DrafterWeights {
  // The key in specs: weights=f32|bf16|int8|int4.
  static constexpr const char* kKey = "weights";

  // Throws UsageError for other values.
  static DrafterWeights read(const Spec& spec);

  // The options to load this drafter by, from those of all drafters.
  LoadOptions options(const LoadOptions& of_all) const;

  std::optional<kernels::WeightKind> kind = std::nullopt;  // none: as for all drafters
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_REGISTRY_DRAFTER_WEIGHTS_H_
