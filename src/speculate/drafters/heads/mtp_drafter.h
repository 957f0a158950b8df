// SPDX-License-Identifier: Apache-2.0
// Multi-token prediction modules of the target as drafter (model/heads/mtp_modules.h).
#ifndef OUTRIDER_SPECULATE_DRAFTERS_HEADS_MTP_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_HEADS_MTP_DRAFTER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/heads/feature_head.h"
#include "speculate/block_builder.h"
#include "speculate/drafter.h"
#include "speculate/drafters/levelwise_drafter.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Several modules in a chain. Module k, from 0, drafts level k + 1; each keeps a sequence for each
// text. In a text of n tokens all of them draft at position n - 2: the last one whose feature is
// available and whose next token is known.
//
// Row i of module k reads token i + k + 1. So its rows up to n - 2 - k are of committed tokens;
// they are run once and kept. The k rows after them read drafted tokens, each along one path of the
// draft; they are run for level k + 1 and dropped at once. A draft takes a pass a level for all
// texts, and is at most as deep as there are modules. Up to kPrefillRows states are queued for a
// draft, so a text without drafts costs almost nothing. A prompt of one token has no features: its
// first round drafts nothing.
class MtpDrafter final : public LevelwiseDrafter {
 public:
  // Two modules or more; a single one drafts as an EAGLE head (read_mtp_drafter).
  explicit MtpDrafter(std::vector<std::unique_ptr<FeatureHead>> modules);
  ~MtpDrafter() override;

  std::string_view name() const override { return "mtp"; }
  // The module of a position depends on where the round began.
  DrafterTraits traits() const override {
    return {.has_draft_prob = true, .prefix_determined = false, .reads_features = true};
  }
  std::span<const int> feature_layers() const override {
    return modules_.front()->feature_layers();
  }
  std::size_t n_behind(const Context& context) const override;
  void begin(const Context& context) override;
  std::size_t reusable(SequenceId earlier, std::size_t n_common) const override;
  void begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) override;
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;

 private:
  // A module's state of one text.
  struct Progress {
    std::unique_ptr<Sequence> sequence;
    std::vector<float> queued_features;  // (n, dim): states of the positions after the kept rows
    // For each node of the last pass over a draft, its row of `predicted_states`; -1: not run.
    std::vector<int> row_of;
    std::vector<float> predicted_states;  // (n, dim)
  };
  using State = std::vector<Progress>;  // one for each module
  // A text in a pass of one module: known rows to run, then those of nodes.
  struct Running {
    const Context* context = nullptr;
    State* state = nullptr;
    const DraftTree* tree = nullptr;
    std::vector<int> nodes;       // ascending
    std::span<const int> wanted;  // the nodes among them whose logits are needed; ascending
    int n_known = 0;
  };

  int prepare(const DraftJob& job) override;
  RowPer run_level(int level, std::span<const Growing> drafts) override;
  void complete(const Growing& draft) override;
  bool run_node(const Context& context, const DraftTree& tree, int node) override;

  int n_queued(const Progress& progress) const;
  bool is_ready(const State& state, const Context& context) const;
  void add_features(State& state, const FeatureRows& features, int n);
  void run_known(const Context& context, State& state);
  Running to_run(int module, const Context& context, State& state, const DraftTree& tree,
                 std::span<const int> wanted) const;
  void add_block(int module, const Running& running);
  void run(int module, std::span<const Running> all);
  void take_predicted(int module, const Running& running, int first_row);
  std::span<const float> predicted_at(const State& state, int module, int node) const;

  std::vector<std::unique_ptr<FeatureHead>> modules_;
  std::size_t dim_;
  std::unordered_map<SequenceId, State> states_;

  // Reused from round to round.
  std::vector<Running> running_;
  BlockBuilder blocks_;
};

// "mtp[:PATH][,confidence=C,weights=W]": the modules in PATH, or else in the target's files. A
// single module drafts to any depth from its own states, as an EAGLE head does. PATH may also be an
// assistant of Gemma 4 (assistant_drafter.h).
DrafterPlan read_mtp_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_HEADS_MTP_DRAFTER_H_
