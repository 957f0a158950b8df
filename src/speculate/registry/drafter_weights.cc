// SPDX-License-Identifier: Apache-2.0
#include "speculate/registry/drafter_weights.h"

#include <string>

namespace outrider {

DrafterWeights DrafterWeights::read(const Spec& spec) {
  const std::optional<std::string> name = spec.choice(kKey, {"f32", "bf16", "int8", "int4"});
  return {.kind = name ? weight_kind_named(*name) : std::nullopt};
}

LoadOptions DrafterWeights::options(const LoadOptions& of_all) const {
  LoadOptions options = of_all;
  if (kind) options.weights = kind;
  return options;
}

}  // namespace outrider
