// SPDX-License-Identifier: Apache-2.0
// One text of a model, plain or drafted, with all its logits, for comparisons bit for bit.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTED_TEXT_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTED_TEXT_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider::test {

// An encoder-decoder's prompt begins with its start token; its encoder reads encoder_prompt.
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

// Expects that texts drafted by each of these drafters have the bits of the plain text: in chains
// of 1 to 8 and in trees, with and without sampling. Some drafted tokens must be accepted.
inline void expect_bits_of_plain_texts(const std::shared_ptr<const Model>& target,
                                       const std::vector<TokenId>& prompt,
                                       const std::vector<std::string>& drafters) {
  std::vector<std::string> trees = {"", "static:eagle1", "dynamic:total=25,depth=6,topk=5",
                                    "best:nodes=25,depth=6", "widths:4,3,1"};
  for (int length = 1; length <= 8; ++length) {
    trees.push_back(fmt::format("chain:length={}", length));
  }
  for (const double temperature : {0.0, 1.0}) {
    const GenerateResult plain = draft_text(target, prompt, temperature, {});
    std::int64_t n_accepted = 0;
    for (const std::string& tree : trees) {
      for (const std::string& drafter : drafters) {
        SCOPED_TRACE(tree + " " + drafter);
        const GenerateResult drafted = draft_text(target, prompt, temperature,
                                                  {.drafter = drafter,
                                                   .tree = tree,
                                                   .verify = temperature == 0 ? "exact" : "coupled",
                                                   .adaptive = false});
        EXPECT_EQ(drafted.ids, plain.ids);
        EXPECT_EQ(drafted.logits, plain.logits);
        EXPECT_GT(drafted.statistics.drafted, 0);
        n_accepted += drafted.statistics.accepted;
      }
    }
    EXPECT_GT(n_accepted, 0);
  }
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTED_TEXT_H_
