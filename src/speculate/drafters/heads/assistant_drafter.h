// SPDX-License-Identifier: Apache-2.0
// The assistant model of Gemma 4 as drafter (model/heads/gemma4_assistant.h).
#ifndef OUTRIDER_SPECULATE_DRAFTERS_HEADS_ASSISTANT_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_HEADS_ASSISTANT_DRAFTER_H_

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/heads/gemma4_assistant.h"
#include "speculate/drafter.h"
#include "speculate/drafters/levelwise_drafter.h"

namespace outrider {

// Keeps one state for each text: the target's at the last position that it has run. It keeps no
// keys: its rows read those of the target's sequence (DraftJob::judged), within propose() alone. So
// prompts need no pass of the drafter, and rejected drafts need no rollback. Without the target's
// sequence, or without a state (a prompt of one token), a text drafts nothing. A draft takes one
// pass a level for all texts. If a rule may ask for the distribution after a leaf, it takes one
// more over all leaves, while the keys are available.
class AssistantDrafter final : public LevelwiseDrafter {
 public:
  explicit AssistantDrafter(std::unique_ptr<Gemma4Assistant> assistant);
  ~AssistantDrafter() override;

  std::string_view name() const override { return "mtp"; }
  // The state that a row reads depends on where the round began.
  DrafterTraits traits() const override {
    return {.has_draft_prob = true, .prefix_determined = false, .reads_features = true};
  }
  std::span<const int> feature_layers() const override { return assistant_->feature_layers(); }
  void begin(const Context& context) override;
  std::size_t reusable(SequenceId earlier, std::size_t n_common) const override;
  void begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) override;
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;

 private:
  struct State {
    int n_run = 0;                     // tokens that the target has run
    std::vector<float> last;           // (dim): its state at the last of them; empty: unknown
    const Sequence* judged = nullptr;  // within propose()
    // For each node of the last draft, its row in `predicted_states`; -1 if none was run.
    std::vector<int> row_of;
    std::vector<float> predicted_states;  // (n, dim)
    // Nodes that were run for a rule, and the logits after them.
    std::vector<int> leaves;
    std::vector<float> leaf_logits;  // (n leaves, vocabulary size)
  };

  int prepare(const DraftJob& job) override;
  bool mixes_levels() const override { return true; }
  RowPer run_level(int level, std::span<const Growing> drafts) override;
  void complete(const Growing& draft) override;
  bool run_node(const Context& context, const DraftTree& tree, int node) override;

  void take_features(State& state, const FeatureRows& features, int n);
  void clear_rows();
  void add_rows(State& state, const DraftTree& tree, std::span<const int> nodes);
  void run_rows();
  void run_leaves(State& state, const DraftTree& tree);

  std::unique_ptr<Gemma4Assistant> assistant_;
  std::size_t dim_;
  std::unordered_map<SequenceId, State> states_;

  // State of one pass; reused from pass to pass.
  std::vector<KeyReaders> readers_;
  std::vector<TokenId> tokens_;
  std::vector<float> row_states_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_HEADS_ASSISTANT_DRAFTER_H_
