// Multi-token prediction modules of the target as drafter (model/heads/mtp_modules.h).
#ifndef OUTRIDER_SPECULATE_DRAFTERS_MTP_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_MTP_DRAFTER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/heads/feature_head.h"
#include "speculate/block_builder.h"
#include "speculate/drafter.h"
#include "speculate/drafter_plan.h"
#include "speculate/drafters/levelwise_drafter.h"

namespace outrider {

// Several modules, chained. Module k, from 0, drafts level k + 1. Behind a text of n tokens all of
// them do so at place n - 2, the last whose feature the target has left and whose next token is
// known; each keeps a sequence per text. Row i of module k reads token i + k + 1, so that of its
// rows those up to n - 2 - k are of committed tokens: they are run once and kept. The k rows behind
// them read drafted tokens, one path of the draft each; they are run when level k + 1 is wanted and
// dropped at once. A draft takes a pass a level, for all texts, and is no deeper than there are
// modules. Up to kPrefillRows states wait for a draft, so that a text that is not drafted for costs
// next to nothing. A prompt of one token has no features: its first round drafts nothing.
class MtpDrafter final : public LevelwiseDrafter {
 public:
  // Two modules or more: one runs on by itself (read_mtp_drafter).
  explicit MtpDrafter(std::vector<std::unique_ptr<FeatureHead>> modules);
  ~MtpDrafter() override;

  std::string_view name() const override { return "mtp"; }
  // Which module a position gets depends on where the round began.
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
  // A module's share in one text.
  struct Progress {
    std::unique_ptr<Sequence> sequence;
    std::vector<float> queued_features;  // (n, dim): states of the places behind the kept rows
    // Of the last pass over a draft: which row of `predicted_states` is what each node's row gave,
    // -1 for those that were not run.
    std::vector<int> row_of;
    std::vector<float> predicted_states;  // (n, dim)
  };
  using State = std::vector<Progress>;  // one for each module
  // A text in a pass of one module: the known rows that it is given to run, then those of nodes.
  struct Running {
    const Context* context = nullptr;
    State* state = nullptr;
    const DraftTree* tree = nullptr;
    std::vector<int> nodes;       // ascending
    std::span<const int> wanted;  // whose logits are; ascending, nodes among them
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

// "mtp[:PATH][,confidence=C,weights=W]": the modules in PATH, or else in the target's own files. A
// single module drafts as an EAGLE head does, from the states that it gives, as deep as is asked.
// PATH may be an assistant of Gemma 4, too (assistant_drafter.h).
DrafterPlan read_mtp_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_MTP_DRAFTER_H_
