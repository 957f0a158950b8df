// Medusa heads as drafter: every level of a draft from a head of its own on the target's last
// feature (model/heads/medusa_heads.h).
#ifndef OUTRIDER_SPECULATE_DRAFTERS_MEDUSA_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_MEDUSA_DRAFTER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/heads/medusa_heads.h"
#include "speculate/drafter.h"
#include "speculate/drafter_plan.h"
#include "speculate/tree_growth.h"

namespace outrider {

// Keeps one feature a text: the target's at the last token but one, which is what its output matrix
// read when it gave the last token. A head runs once a level, for all texts; what it gives is the
// same behind all nodes of the level but for penalties, which count each node's path. Drafts are no
// deeper than there are heads. A prompt of one token has no such feature: its first round drafts
// nothing.
class MedusaDrafter final : public Drafter {
 public:
  explicit MedusaDrafter(std::unique_ptr<MedusaHeads> heads);
  ~MedusaDrafter() override;

  std::string_view name() const override { return "medusa"; }
  // Which head a position gets depends on where the round began.
  DrafterTraits traits() const override {
    return {.has_draft_prob = true, .prefix_determined = false, .reads_features = true};
  }
  std::span<const int> feature_layers() const override { return {&feature_layer_, 1}; }
  void begin(const Context& context) override;
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override;
  void propose(std::span<DraftJob> jobs) override;
  bool draft_at(const Context& context, const DraftTree& tree, int node, Distribution& draft_prob,
                Distribution* raw_draft) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;
  std::int64_t n_passes() const override { return n_passes_; }

 private:
  struct Text {
    int n_known = 0;             // tokens whose features have been seen, from the text's beginning
    std::vector<float> feature;  // (dim) of the last of them
  };
  struct Growing;  // a draft on its way
  static bool is_ready(const Text& text, const Context& context);

  std::unique_ptr<MedusaHeads> heads_;
  int feature_layer_;
  std::unordered_map<SequenceId, Text> texts_;
  std::int64_t n_passes_ = 0;

  // Reused from round to round.
  ForwardOutput output_;
  std::vector<std::unique_ptr<TreeGrowth>> growths_;
  std::vector<Growing> growing_;
  std::vector<float> features_;
  PenalisedRow penalised_;
};

// "medusa:PATH[,confidence=C]".
DrafterPlan read_medusa_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_MEDUSA_DRAFTER_H_
