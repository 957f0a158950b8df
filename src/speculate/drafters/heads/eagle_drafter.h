// SPDX-License-Identifier: Apache-2.0
// An EAGLE head as drafter: chains and trees from a layer on the target's hidden states
// (model/heads/eagle_head.h).
#ifndef OUTRIDER_SPECULATE_DRAFTERS_HEADS_EAGLE_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_HEADS_EAGLE_DRAFTER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/heads/feature_head.h"
#include "speculate/block_builder.h"
#include "speculate/drafter.h"
#include "speculate/drafters/heads/queued_states.h"
#include "speculate/drafters/levelwise_drafter.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Keeps one sequence of the head for each text. Its kept rows have read the target's features only.
// Rows of a draft, which read predicted states, are dropped after the round, accepted or not.
// Accepted tokens are run again with the features of the target's pass: the first level of a draft
// runs what was committed since the last draft. So a text without drafts costs almost nothing. Of a
// prompt, too, only states beyond kPrefillRows are run at once.
//
// Row i of the sequence reads the features of token i, and token i + 1. A text of n tokens has rows
// 0 .. n - 2; the last gives the distribution after the root. A prompt of one token has none: its
// first round drafts nothing.
class EagleDrafter : public LevelwiseDrafter {
 public:
  explicit EagleDrafter(std::unique_ptr<FeatureHead> head);
  ~EagleDrafter() override;

  std::string_view name() const override { return "eagle"; }
  // A draft reads the target's states up to the root and predictions after it, so distributions
  // depend on where a round began.
  DrafterTraits traits() const override {
    return {.has_draft_prob = true, .prefix_determined = false, .reads_features = true};
  }
  std::span<const int> feature_layers() const override { return head_->feature_layers(); }
  std::size_t n_behind(const Context& context) const override;
  void begin(const Context& context) override;
  std::size_t reusable(SequenceId earlier, std::size_t n_common) const override;
  void begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) override;
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;

  const FeatureHead& head() const { return *head_; }

 protected:
  struct State {
    QueuedStates states;
    // For each node of the last draft, its pending row (-1: not run), and the states that rows
    // gave: the root's first, then each pending row's. (1 + n_pending, dim)
    std::vector<int> pending;
    std::vector<float> predicted_states;
  };
  int prepare(const DraftJob& job) override;
  bool mixes_levels() const override { return true; }
  RowPer run_level(int level, std::span<const Growing> drafts) override;
  void complete(const Growing& draft) override;
  bool run_node(const Context& context, const DraftTree& tree, int node) override;

  State& state_of(const Context& context) { return states_.at(context.id); }
  BlockBuilder& blocks() { return blocks_; }
  bool has_room(std::size_t n_tokens) const;
  bool is_ready(const Context& context, const State& state) const;
  void add_known(const Context& context, const State& state, int n_rows);
  void run_blocks();
  void run_known(const Context& context, State& state, int n_rows);
  void keep_rows(State& state, int n_rows);

 private:
  void add_features(const Context& context, State& state, const FeatureRows& features, int n);
  void add_nodes(const DraftTree& tree, std::span<const int> nodes, State& state);

  std::unique_ptr<FeatureHead> head_;
  std::size_t dim_;
  std::unordered_map<SequenceId, State> states_;

  // Reused from round to round.
  BlockBuilder blocks_;
  std::vector<float> features_;
};

// "eagle:PATH[,confidence=C]".
DrafterPlan read_eagle_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_HEADS_EAGLE_DRAFTER_H_
