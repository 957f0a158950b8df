// The type of a drafter's weights in memory, where its spec names one.
#ifndef OUTRIDER_SPECULATE_DRAFTER_WEIGHTS_H_
#define OUTRIDER_SPECULATE_DRAFTER_WEIGHTS_H_

#include <optional>

#include "base/spec.h"
#include "kernels/table.h"
#include "model/load_model.h"

namespace outrider {

// A small drafter may take most of a round in weights that need not be exact: with the rule `exact`
// what it drafts is judged anyway. Other rules take the drafter at its word, as it is then.
struct DrafterWeights {
  // Key of the specs that may name a type: weights=f32|bf16|int8|int4.
  static constexpr const char* kKey = "weights";

  // Throws UsageError for other values.
  static DrafterWeights read(const Spec& spec);

  // Options to load this drafter by, where those of all drafters are given.
  LoadOptions options(const LoadOptions& of_all) const;

  std::optional<kernels::WeightKind> kind = std::nullopt;  // none: as asked for all drafters
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTER_WEIGHTS_H_
