// One text of a model, plain or drafted, with all its logits: what proofs of bits compare.
#ifndef OUTRIDER_TESTS_SUPPORT_DRAFTED_TEXT_H_
#define OUTRIDER_TESTS_SUPPORT_DRAFTED_TEXT_H_

#include <memory>
#include <utility>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider::testing {

// The prompt of an encoder-decoder begins with its start token; its encoder reads encoder_prompt.
inline GenerateResult draft_text(const std::shared_ptr<const Model>& target,
                                 const std::vector<TokenId>& prompt, double temperature,
                                 const SpeculationOptions& speculation,
                                 const std::vector<TokenId>& encoder_prompt = {}) {
  Generator generator(target, speculation);
  GenerateRequest request = {.prompt = prompt,
                             .options = {.max_tokens = 60,
                                         .sampling = {.temperature = temperature},
                                         .seed = 7,
                                         .ignore_eos = true,
                                         .keep_logits = true},
                             .encoder_prompt = encoder_prompt};
  if (!encoder_prompt.empty()) request.prompt.erase(request.prompt.begin());
  return std::move(generator.generate({&request, 1}).at(0));
}

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_DRAFTED_TEXT_H_
