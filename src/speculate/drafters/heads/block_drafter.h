// SPDX-License-Identifier: Apache-2.0
// A block head as drafter: one pass gives all levels of a draft (model/heads/block_head.h).
#ifndef OUTRIDER_SPECULATE_DRAFTERS_HEADS_BLOCK_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_HEADS_BLOCK_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/heads/block_head.h"
#include "speculate/drafter.h"
#include "speculate/drafters/heads/queued_states.h"
#include "speculate/drafters/levelwise_drafter.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Keeps one sequence of the head for each text: the states of all tokens but the last, which is the
// next block's anchor. States of tokens after the last draft are queued until a draft needs them,
// so a text without drafts costs almost nothing. Of a prompt, too, only states beyond kPrefillRows
// are run at once.
//
// Level d of a draft is drawn from slot d's distribution. For dflash it is the same after all nodes
// of a level, except for penalties, which count each node's path. For dspark each node has its own,
// by the previous token and, with a recurrent Markov head, by its whole path. Drafts are at most a
// block deep. A prompt of one token has no state: its first round drafts nothing.
//
// A path of dspark may end before a token whose acceptance the confidence head predicts to be
// unlikely. That head reads the path without the token.
class BlockDrafter final : public LevelwiseDrafter {
 public:
  // min_confidence: paths end where the head's confidence is less; above 0 requires a confidence
  // head.
  explicit BlockDrafter(std::unique_ptr<BlockHead> head, double min_confidence = 0);
  ~BlockDrafter() override;

  std::string_view name() const override { return head_->markov() ? "dspark" : "dflash"; }
  // The slot of a position depends on where the round began.
  DrafterTraits traits() const override {
    return {.has_draft_prob = true,
            .prefix_determined = false,
            .reads_features = true,
            .further_level = head_->further_slot()};
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

 private:
  struct State {
    QueuedStates states;
    std::vector<float> slot_outputs;  // (n_drafted, dim) of this round's block, or empty
    int n_wanted = 0;                 // limit of this round's levels
    int first_row = 0;                // of its logits among the round's
    // (nodes, rank): states of the Markov head at each node of the draft that was run
    std::vector<float> markov;
  };
  int prepare(const DraftJob& job) override;
  bool mixes_levels() const override { return true; }
  RowPer run_level(int level, std::span<const Growing> drafts) override;
  bool ends_path(const Growing& draft, int node) override;
  double log_trust(const Growing& draft, int node) override;
  bool run_node(const Context& context, const DraftTree& tree, int node) override;

  bool has_room(std::size_t n_tokens) const;
  bool is_ready(const Context& context, const State& state) const;
  void add_features(State& state, const FeatureRows& features, int n);
  void run_blocks(std::span<const Context* const> contexts);
  void project_blocks(std::span<const Growing> drafts, ForwardOutput& output);
  double confidence(const Growing& draft, int node) const;
  MarkovHead::Node markov_node(const Context& context, const State& state, const DraftTree& tree,
                               int node) const;
  void run_markov_level(std::span<const Growing> drafts);
  void run_markov_path(const Context& context, const DraftTree& tree, int node);
  void add_markov(std::size_t row, std::span<const float> slot);

  std::unique_ptr<BlockHead> head_;
  std::size_t dim_;
  double min_confidence_;
  std::unordered_map<SequenceId, State> states_;

  // Reused from round to round.
  std::vector<const Context*> contexts_;
  std::vector<BlockHead::Known> known_;
  std::vector<BlockHead::Block> blocks_;
  std::vector<float> features_;
  std::vector<float> slot_outputs_;
  ForwardOutput slots_;  // of dspark: the slots' logits, without the Markov head's
  ForwardOutput added_;  // what the Markov head adds at each node
  std::vector<MarkovHead::Node> nodes_;
  std::vector<float> states_of_nodes_, latents_;  // (nodes, rank)
  std::vector<int> path_;
  float* logits_ = nullptr;  // output()'s rows, while a level is computed
};

// "dflash:PATH[,confidence=C]".
DrafterPlan read_dflash_drafter(const Spec& spec);
// "dspark:PATH[,accept=C,confidence=C]".
DrafterPlan read_dspark_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_HEADS_BLOCK_DRAFTER_H_
