// An EAGLE head that drafts all tokens of a draft in one pass, behind masks, as drafter ("P-EAGLE",
// arXiv 2602.01469; model/heads/eagle_head.h).
#ifndef OUTRIDER_SPECULATE_DRAFTERS_PARALLEL_EAGLE_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_PARALLEL_EAGLE_DRAFTER_H_

#include <memory>
#include <vector>

#include "model/heads/feature_head.h"
#include "speculate/drafters/eagle_drafter.h"
#include "speculate/drafters/masked_rows.h"

namespace outrider {

// A draft of depth k is one pass: the rows of what was committed since the last draft, the root's
// last, and k - 1 rows of masks behind them, a plain chain. The root's row says what follows it,
// the i-th mask's what follows the i-th drafted token, whichever that is: the same behind all nodes
// of a level but for penalties, which count each node's path. Rows of masks are dropped as soon as
// they have been run, and nothing that the head gives is read again. The mask's token is never
// drafted.
class ParallelEagleDrafter final : public EagleDrafter {
 public:
  // The head has a mask.
  explicit ParallelEagleDrafter(std::unique_ptr<FeatureHead> head);
  ~ParallelEagleDrafter() override;

  // One pass gives all levels. A mask's row is left out of account: it adds little to a pass.
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
  std::vector<TokenId> masks_;  // kMostDraftNodes times the token
  std::vector<float> states_;   // and the state
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_PARALLEL_EAGLE_DRAFTER_H_
