// SPDX-License-Identifier: Apache-2.0
// Jacobi decoding: a block of guessed tokens, all of which are updated by every pass of the target.
//
// Source: Santilli et al., "Accelerating Transformer Inference for Translation via Parallel
// Decoding" (2023), algorithm 1. Guess a block, compute what follows each of its tokens, take that
// as the next guess, until nothing changes. The tokens up to the first change are those of plain
// decoding. Verification accepts just these, and the block continues after them.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_TARGET_JACOBI_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_TARGET_JACOBI_DRAFTER_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "speculate/drafter.h"
#include "speculate/drafters/target/target_guesses.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// A draft is a chain of point masses: the target's likeliest tokens after each token of the block
// in the previous round, rejected ones included. Where these end, the text's last token is
// repeated. The block is the only state of a text.
class JacobiDrafter final : public Drafter {
 public:
  std::string_view name() const override { return "jacobi"; }
  DrafterTraits traits() const override { return {}; }
  void begin(const Context& context) override { blocks_[context.id].clear(); }
  void propose(std::span<DraftJob> jobs) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override { blocks_.erase(id); }
  void rewind(const Context& context, std::size_t n_common) override;
  std::int64_t n_passes() const override { return 0; }

 private:
  std::unordered_map<SequenceId, std::vector<TokenId>> blocks_;  // guesses of the next tokens
  TargetGuesses guesses_;
};

// "jacobi[:length=K]".
DrafterPlan read_jacobi_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_TARGET_JACOBI_DRAFTER_H_
