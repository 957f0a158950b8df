// SPDX-License-Identifier: Apache-2.0
// An EAGLE head that drafts all tokens in one pass with masks, as drafter ("P-EAGLE", arXiv
// 2602.01469; model/heads/eagle_head.h).
#ifndef OUTRIDER_SPECULATE_DRAFTERS_HEADS_PARALLEL_EAGLE_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_HEADS_PARALLEL_EAGLE_DRAFTER_H_

#include <memory>
#include <vector>

#include "model/heads/feature_head.h"
#include "speculate/drafters/heads/eagle_drafter.h"
#include "speculate/drafters/masked_rows.h"

namespace outrider {

// A draft of depth k is one pass: the rows committed since the last draft, ending with the root's,
// and k - 1 rows of masks after them, a plain chain. The root's row predicts the next token, the
// i-th mask's row the token after the i-th drafted one, whichever that is. So predictions are the
// same after all nodes of a level, except for penalties, which count each node's path. Rows of
// masks are dropped as soon as they have been run; the head's predicted states are never read
// again. The mask's token is never drafted.
class ParallelEagleDrafter final : public EagleDrafter {
 public:
  // The head must have a mask.
  explicit ParallelEagleDrafter(std::unique_ptr<FeatureHead> head);
  ~ParallelEagleDrafter() override;

  // One pass gives all levels. The cost of a mask's row is neglected: it adds little to a pass.
  DrafterTraits traits() const override {
    DrafterTraits traits = EagleDrafter::traits();
    traits.further_level = 0;
    return traits;
  }
  void end(SequenceId id) override;

 private:
  int prepare(const DraftJob& job) override;
  bool mixes_levels() const override { return true; }
  RowPer run_level(int level, std::span<const Growing> drafts) override;
  bool run_node(const Context& context, const DraftTree& tree, int node) override;

  void catch_up(const Context& context, State& state, int n_masks);
  void add_block(const Context& context, const State& state, int n_masks);
  void run_masked();

  MaskedRows rows_;
  std::vector<TokenId> masks_;  // kMaxDraftNodes times the token
  std::vector<float> states_;   // and the state
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_HEADS_PARALLEL_EAGLE_DRAFTER_H_
