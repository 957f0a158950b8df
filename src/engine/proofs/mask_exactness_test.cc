// SPDX-License-Identifier: Apache-2.0
// A user's mask at every node, by enumeration: every outcome of drafter and verifier runs through
// the production loop. The joint distribution of the emitted tokens must be that of the target's
// rows with forbidden tokens at minus infinity. With another node's mask, the same enumeration must
// notice. A drafter without a mask changes only the speed.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "speculate/drafters/forwarding_drafter.h"
#include "speculate/drafters/model_drafter.h"
#include "tests/support/proofs/acceptance_cases.h"
#include "tests/support/proofs/enumerated_process.h"
#include "tests/support/proofs/exactness.h"

namespace outrider {
namespace {

using test::acceptance_cases;
using test::AcceptanceCase;
using test::distance;
using test::enumerate;
using test::Enumerated;
using test::kCaught;
using test::kExact;
using test::TableModel;
using test::target_distribution;
using test::transforms;
using test::Trial;

constexpr int kVocabulary = 4;
const std::vector<TokenId> kPrompt = {0, 2};  // as trial_of()

// A number that depends on every token and its place.
int mixed(std::span<const TokenId> tokens) {
  int sum = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    sum += (static_cast<int>(i) + 1) * (static_cast<int>(tokens[i]) + 1);
  }
  return sum;
}
// One token in three is forbidden, never all four; after some texts none is.
bool all_may_follow(std::span<const TokenId> tokens) { return mixed(tokens) % 5 == 0; }
bool may_follow(std::span<const TokenId> tokens, TokenId token) {
  return all_may_follow(tokens) || (mixed(tokens) + token) % 3 != 0;
}

using Seen = std::function<std::span<const TokenId>(const MaskedText&)>;

// Masks for a new text, from the part of each place's tokens that `seen` returns.
std::function<std::shared_ptr<TextMasks>()> masks_by(const Seen& seen) {
  const TokenMask mask = [seen](const MaskedText& text, std::span<std::uint32_t> allowed) {
    const std::span<const TokenId> tokens = seen(text);
    if (all_may_follow(tokens)) return false;
    for (TokenId token = 0; token < kVocabulary; ++token) {
      if (may_follow(tokens, token)) allowed[0] |= std::uint32_t{1} << token;
    }
    return true;
  };
  return [mask] { return std::make_shared<TextMasks>(mask, kPrompt, kVocabulary); };
}
std::span<const TokenId> all_tokens(const MaskedText& text) { return text.tokens; }

void forbid(const std::vector<TokenId>& emitted, std::vector<float>& logits) {
  std::vector<TokenId> tokens = kPrompt;
  tokens.insert(tokens.end(), emitted.begin(), emitted.end());
  for (TokenId token = 0; token < kVocabulary; ++token) {
    if (may_follow(tokens, token)) continue;
    logits[static_cast<std::size_t>(token)] = -std::numeric_limits<float>::infinity();
  }
}

Trial masked_trial(TableModel& target, Drafter& drafter, const AcceptanceCase& one,
                   const SamplingParams& sampling) {
  Trial trial = test::trial_of(target, drafter, one, sampling);
  trial.mask = forbid;
  trial.masks = masks_by(all_tokens);
  return trial;
}

ModelDrafter drafter_of(std::uint32_t seed) {
  return ModelDrafter(std::make_unique<TableModel>(kVocabulary, seed), kVocabulary);
}

TEST(MaskExactness, AMaskAtEveryNode) {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    TableModel target(kVocabulary, 2 * seed);
    for (const auto& [sampling_name, sampling] : transforms()) {
      for (const AcceptanceCase& one : acceptance_cases()) {
        ModelDrafter drafter = drafter_of(2 * seed + 1);
        const Trial trial = masked_trial(target, drafter, one, sampling);
        const Enumerated enumerated = enumerate(trial);
        EXPECT_NEAR(enumerated.weight, 1.0, kExact);
        EXPECT_LT(distance(enumerated.dist, target_distribution(trial)), kExact)
            << one.name << ", " << sampling_name;
      }
    }
  }
}

// Without the mask, or with that of the parent or of the root, the distribution differs.
TEST(MaskExactness, MutantsAreCaught) {
  TableModel target(kVocabulary, 4);
  const AcceptanceCase one{"", make_multi_round(std::make_shared<ExactRule>()), chain_shape(2)};
  const Seen of_parent = [](const MaskedText& text) {
    const std::size_t n = text.tokens.size();
    return text.tokens.first(n > text.n_committed ? n - 1 : n);
  };
  const Seen of_root = [](const MaskedText& text) { return text.tokens.first(text.n_committed); };
  const Seen of_prompt = [](const MaskedText& text) { return text.tokens.first(text.n_prompt); };
  for (const Seen& seen : {of_parent, of_root, of_prompt, Seen()}) {
    ModelDrafter drafter = drafter_of(5);
    Trial trial = masked_trial(target, drafter, one, {.temperature = 1});
    trial.masks = seen ? masks_by(seen) : nullptr;
    EXPECT_GT(distance(enumerate(trial).dist, target_distribution(trial)), kCaught);
  }
}

// Drafts without the mask.
class IgnoresMasks final : public ForwardingDrafter {
 public:
  using ForwardingDrafter::ForwardingDrafter;
  void propose(std::span<DraftJob> jobs) override {
    for (DraftJob& job : jobs) {
      TokenHistory unmasked;
      unmasked.add_prompt(job.context->tokens);
      Context context = *job.context;
      context.history = &unmasked;
      DraftJob changed = job;
      changed.context = &context;
      inner().propose({&changed, 1});
    }
  }
};

TEST(MaskExactness, ADrafterThatIsNotMaskedIsSlower) {
  TableModel target(kVocabulary, 4);
  for (const AcceptanceCase& one : acceptance_cases()) {
    ModelDrafter drafter = drafter_of(4);  // the target itself
    const Trial trial = masked_trial(target, drafter, one, {.temperature = 1});
    const Enumerated masked = enumerate(trial);
    IgnoresMasks ignoring(drafter);
    Trial without = trial;
    without.drafter = &ignoring;
    const Enumerated unmasked = enumerate(without);
    EXPECT_LT(distance(masked.dist, unmasked.dist), kExact) << one.name;
    EXPECT_LT(unmasked.accepted_in_first_round, masked.accepted_in_first_round - 0.01) << one.name;
  }
}

}  // namespace
}  // namespace outrider
