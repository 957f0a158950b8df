// SPDX-License-Identifier: Apache-2.0
// Compares a drafter's drafts after the golden texts with tests/golden/drafts.json.
#ifndef OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_DRAFTS_H_
#define OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_DRAFTS_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "model/language_model.h"
#include "sampling/counter_chance.h"
#include "speculate/acceptances/acceptance.h"
#include "speculate/decoder.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/near.h"

namespace outrider::test {

inline const nlohmann::json& golden_drafts() {
  static const nlohmann::json kGolden = nlohmann::json::parse(
      std::ifstream(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests/golden/drafts.json"));
  return kGolden;
}

// `expected`: the golden program's drafts after each of its texts. The engine computes in f32, the
// program in f64. Weights are of order one. Sums have at most 24 terms and pass through three
// layers and as many draft steps. Probabilities, which are below one, therefore differ by less than
// 1e-5.
inline void expect_golden_drafts(LanguageModel& target, Drafter& drafter,
                                 const nlohmann::json& expected) {
  constexpr double kTolerance = 1e-5;
  const auto shape =
      std::make_shared<FixedShape>(widths_tree(std::vector{2, 1, 1}), Siblings::top_ranks);
  const auto acceptance = make_multi_round(std::make_shared<ExactRule>());
  Decoder decoder(target, &drafter, *acceptance, shape, nullptr);
  for (std::size_t index = 0; index < expected.size(); ++index) {
    const auto tokens = golden_drafts().at("texts").at(index).get<std::vector<TokenId>>();
    CounterChance chance(1);
    Stream stream(static_cast<SequenceId>(index), tokens,
                  Transform({.temperature = 1}, target.config().vocabulary_size), chance);
    stream.max_total = target.config().context_length;
    decoder.begin(stream);
    Stream* const streams[] = {&stream};
    decoder.round(streams, [](Stream&, const Committed&) { return false; });
    const nlohmann::json& draft = expected.at(index);
    const DraftTree& tree = stream.tree;
    ASSERT_EQ(static_cast<std::size_t>(tree.n_drafted()), draft.at("tokens").size());
    std::size_t n_compared = 0;
    for (int node = 0; node < tree.n_nodes(); ++node) {
      if (node > 0) {
        const auto place = static_cast<std::size_t>(node - 1);
        EXPECT_EQ(tree.node(node).token, draft.at("tokens").at(place)) << "node " << node;
        EXPECT_EQ(tree.node(node).parent, draft.at("parents").at(place)) << "node " << node;
      }
      if (tree.node(node).draft_prob == kNoDistribution) continue;
      const Distribution& dist = tree.distribution(tree.node(node).draft_prob);
      const nlohmann::json& probs = draft.at("probs").at(n_compared++);
      for (std::size_t token = 0; token < probs.size(); ++token) {
        EXPECT_TRUE(test::near(dist.prob(static_cast<TokenId>(token)), probs.at(token), kTolerance))
            << "text " << index << ", node " << node << ", token " << token;
      }
    }
    EXPECT_EQ(n_compared, draft.at("probs").size());
    decoder.end(stream);
  }
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_DRAFTS_H_
