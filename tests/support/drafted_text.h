// One text of a model, plain or drafted, with all its logits: what proofs of bits compare.
#ifndef OUTRIDER_TESTS_SUPPORT_DRAFTED_TEXT_H_
#define OUTRIDER_TESTS_SUPPORT_DRAFTED_TEXT_H_

#include <memory>
#include <utility>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider::testing {

inline GenerateResult draft_text(const std::shared_ptr<const Model>& target,
                                 const std::vector<TokenId>& prompt, double temperature,
                                 const SpeculationOptions& speculation) {
  Generator generator(target, speculation);
  const GenerateRequest request = {.prompt = prompt,
                                   .options = {.max_tokens = 60,
                                               .sampling = {.temperature = temperature},
                                               .seed = 7,
                                               .ignore_eos = true,
                                               .keep_logits = true}};
  return std::move(generator.generate({&request, 1}).at(0));
}

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_DRAFTED_TEXT_H_
