// Jacobi decoding: a block of tokens to come, of which every pass of the target renews all at once.
//
// Source: Santilli et al., "Accelerating Transformer Inference for Translation via Parallel
// Decoding" (2023), algorithm 1: guess a block, let the model say what follows each of its tokens,
// take that as the next guess, until nothing changes. The tokens up to the first that changed are
// those of plain decoding; verification finds just them, and the block goes on behind them.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_JACOBI_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_JACOBI_DRAFTER_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "speculate/drafter.h"
#include "speculate/drafter_plan.h"
#include "speculate/drafters/target_guesses.h"

namespace outrider {

// A draft is a chain of point masses: what the target found likeliest, in the round before, behind
// each token of the block (also behind those that were rejected), and where that ends, the text's
// last token again and again. No state of a text but the block.
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
  std::unordered_map<SequenceId, std::vector<TokenId>> blocks_;  // guesses at what follows the text
  TargetGuesses guesses_;
};

// "jacobi[:length=K]".
DrafterPlan read_jacobi_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_JACOBI_DRAFTER_H_
