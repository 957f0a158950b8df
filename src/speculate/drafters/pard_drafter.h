// SPDX-License-Identifier: Apache-2.0
// A small model that drafts all tokens in one pass with mask tokens, as drafter (An et al., "PARD",
// arXiv 2504.18583).
#ifndef OUTRIDER_SPECULATE_DRAFTERS_PARD_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_PARD_DRAFTER_H_

#include <memory>
#include <vector>

#include "model/language_model.h"
#include "speculate/drafter.h"
#include "speculate/drafters/masked_rows.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// A draft of depth k is one pass: the committed tokens that the model has not run, ending with the
// root, and k - 1 masks after them, a plain chain. The root's row predicts the next token, the i-th
// mask's row the token after the i-th drafted one, whichever that is. So level d of a draft is
// drawn from row d. It is the same after all nodes of the level, except for penalties, which count
// each node's path. Keys and values of masks are dropped as soon as they have been run; committed
// tokens are kept as in ModelDrafter.
class PardDrafter final : public ModelDrafter {
 public:
  // mask: a token of the model. It is never drafted.
  PardDrafter(std::unique_ptr<LanguageModel> model, int target_vocabulary_size, TokenId mask);
  ~PardDrafter() override;

  // One pass gives all levels. The cost of a mask's row is neglected: it adds little to a pass.
  DrafterTraits traits() const override {
    DrafterTraits traits = ModelDrafter::traits();
    traits.further_level = 0;
    return traits;
  }
  void end(SequenceId id) override;

 private:
  int prepare(const DraftJob& job) override;
  bool mixes_levels() const override { return true; }
  RowPer run_level(int level, std::span<const Growing> drafts) override;
  bool run_node(const Context& context, const DraftTree& tree, int node) override;

  void add_block(const Context& context, const State& state, int n_masks);
  void run_blocks();

  MaskedRows rows_;
  std::vector<TokenId> masks_;  // kMaxDraftNodes times the token
};

// The default draft length: what the authors' drafters were trained to draft at once (para_num),
// and the value of vLLM's example. The authors' script uses 12.
inline constexpr int kPardLength = 8;

// "pard:PATH[,length=K,mask=ID,confidence=C,weights=T]".
DrafterPlan read_pard_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_PARD_DRAFTER_H_
