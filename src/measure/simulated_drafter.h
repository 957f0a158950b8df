// SPDX-License-Identifier: Apache-2.0
// A drafter with the cost of another one and a given acceptance rate.
#ifndef OUTRIDER_MEASURE_SIMULATED_DRAFTER_H_
#define OUTRIDER_MEASURE_SIMULATED_DRAFTER_H_

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sampling/counter_chance.h"
#include "speculate/drafter.h"

namespace outrider {

// Another drafter makes its draft, with all its passes. Then each token of it is replaced by the
// one at its position in a text known beforehand, or spoiled: replaced by some other token, with
// probability 1 - acceptance. Whether a position is spoiled depends on the seed and the position,
// not on the round or the draft. The other drafter keeps its state as if its own tokens had been
// judged: the same number of them is accepted, and it sees the text as it is committed.
//
// Draft tokens are named (point masses). They go through the ordinary loop, which emits the
// target's own tokens for any draft.
class SimulatedDrafter final : public Drafter {
 public:
  // text: prompt and continuation, up to the last token that may be drafted. inner must outlive
  // this.
  SimulatedDrafter(Drafter& inner, std::vector<TokenId> text, int vocabulary_size,
                   double acceptance, std::uint64_t seed);

  std::string_view name() const override { return "simulated"; }
  DrafterTraits traits() const override {
    return {.reads_features = inner_->traits().reads_features};
  }
  std::span<const int> feature_layers() const override { return inner_->feature_layers(); }

  void begin(const Context& context) override;
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override;
  // Throws Error if the inner drafter drafts anything but a chain, or beyond the text.
  void propose(std::span<DraftJob> jobs) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;
  std::int64_t n_passes() const override { return inner_->n_passes(); }

  // Its draft for the token at this position of the text.
  TokenId token_at(std::int64_t position);

 private:
  Drafter* inner_;
  std::vector<TokenId> text_;
  int vocabulary_size_;
  double acceptance_;
  CounterChance chance_;
  std::unordered_map<SequenceId, DraftTree> drafts_;  // the inner drafter's, of this round

  // Reused from round to round.
  std::vector<DraftJob> jobs_;
  std::vector<RoundResult> results_;
};

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_SIMULATED_DRAFTER_H_
