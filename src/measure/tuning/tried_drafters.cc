// SPDX-License-Identifier: Apache-2.0
// The drafters to try for a model.
#include "outrider/tune_drafters.h"
#include "speculate/drafters/own_parts.h"

namespace outrider {

std::vector<std::string> drafters_to_try(const Model& model) {
  std::vector<std::string> specs = own_parts(model.path());
  // After the first, suffix: drafters for any other model.
  specs.insert(specs.begin() + 1, {"ngram", "lookahead"});
  return specs;
}

}  // namespace outrider
