// SPDX-License-Identifier: Apache-2.0
// A sequential cascade with the interface of a Generator: requests in, texts and statistics out.
#ifndef OUTRIDER_EVAL_FRONTIERS_SEQUENTIAL_GENERATOR_H_
#define OUTRIDER_EVAL_FRONTIERS_SEQUENTIAL_GENERATOR_H_

#include <memory>
#include <string>

#include "eval/frontiers/sequential_cascade.h"
#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider::eval {

// Not thread-safe; deterministic given the options.
class SequentialGenerator {
 public:
  // `speculation` names the drafter, a model; its other members are ignored. Throws Error and
  // UsageError as a Generator would, and for an invalid cascade spec.
  SequentialGenerator(std::shared_ptr<const Model> model, const SpeculationOptions& speculation,
                      const std::string& cascade);

  // Ends texts as Generator does. on_token and keep_logits are ignored. In the statistics, drafted,
  // accepted and rejected are 0, and so are rule_kl and rule_tv where they are unknown.
  GenerateResult generate(const GenerateRequest& request);

 private:
  std::shared_ptr<const Model> model_;
  std::unique_ptr<LanguageModel> drafter_;
  SequentialCascade cascade_;
};

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_FRONTIERS_SEQUENTIAL_GENERATOR_H_
