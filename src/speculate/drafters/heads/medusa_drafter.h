// SPDX-License-Identifier: Apache-2.0
// Medusa heads as drafter: each level of a draft comes from a separate head on the target's last
// feature (model/heads/medusa_heads.h).
#ifndef OUTRIDER_SPECULATE_DRAFTERS_HEADS_MEDUSA_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_HEADS_MEDUSA_DRAFTER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/heads/medusa_heads.h"
#include "speculate/drafter.h"
#include "speculate/drafters/levelwise_drafter.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Keeps one feature for each text: the target's at the last token but one, the input of its output
// matrix for the last token. A head runs once a level for all texts. Its logits are the same after
// all nodes of the level, except for penalties, which count each node's path. Drafts are at most as
// deep as there are heads. A prompt of one token has no such feature: its first round drafts
// nothing.
class MedusaDrafter final : public LevelwiseDrafter {
 public:
  explicit MedusaDrafter(std::unique_ptr<MedusaHeads> heads);
  ~MedusaDrafter() override;

  std::string_view name() const override { return "medusa"; }
  // The head of a position depends on where the round began.
  DrafterTraits traits() const override {
    return {.has_draft_prob = true, .prefix_determined = false, .reads_features = true};
  }
  std::span<const int> feature_layers() const override { return {&feature_layer_, 1}; }
  void begin(const Context& context) override;
  std::size_t reusable(SequenceId earlier, std::size_t n_common) const override;
  void begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) override;
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;

 private:
  struct State {
    int n_known = 0;             // tokens from the text's beginning whose features have been seen
    std::vector<float> feature;  // (dim) of the last of them
  };
  int prepare(const DraftJob& job) override;
  RowPer run_level(int level, std::span<const Growing> drafts) override;
  bool run_node(const Context& context, const DraftTree& tree, int node) override;
  static bool is_ready(const State& state, const Context& context);

  std::unique_ptr<MedusaHeads> heads_;
  int feature_layer_;
  std::unordered_map<SequenceId, State> states_;
  std::vector<float> features_;  // reused from round to round
};

// "medusa:PATH[,confidence=C]".
DrafterPlan read_medusa_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_HEADS_MEDUSA_DRAFTER_H_
