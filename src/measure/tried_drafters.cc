// Which drafters a model comes with.
#include "outrider/tune_drafters.h"
#include "speculate/drafters/own_parts.h"

namespace outrider {

std::vector<std::string> drafters_to_try(const Model& model) {
  std::vector<std::string> specs = own_parts(model.path());
  // Behind the first, which is suffix, what any other model has, too.
  specs.insert(specs.begin() + 1, {"ngram", "lookahead"});
  return specs;
}

}  // namespace outrider
