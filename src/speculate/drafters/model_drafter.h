// A small language model as drafter: chains and trees from its distribution under the request's own
// sampling transform.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_MODEL_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_MODEL_DRAFTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/language_model.h"
#include "speculate/drafter.h"
#include "speculate/drafter_plan.h"
#include "speculate/tree_growth.h"
#include "speculate/tree_shape.h"

namespace outrider {

// How long drafts are where no tree is named.
struct DraftLength {
  int first = kDefaultDraftLength;  // of a text's first draft
  // From then on two levels more behind a draft accepted to its end, one less, but at least one,
  // behind any other: the schedule "heuristic" of Hugging Face's assisted generation. The length
  // follows from what became of earlier drafts and is known before the next one is begun: drafts
  // stay exact. false: always the same.
  bool follows_acceptance = false;
};

// From a sequence of the model that is drafted for to one of the drafter's own with the same tokens
// kept; nullptr where that sequence is of no use to it.
using FollowSequence = std::function<std::unique_ptr<Sequence>(const Sequence& judged)>;

// What tells one drafter by a model from another.
struct ModelDrafting {
  std::string_view name = "model";  // which outlives it
  // As LanguageModel promises it; not so for a TranslatedModel.
  bool prefix_determined = true;
  DraftLength length = {};
  // Where given, each draft begins from what the judging model knows of the text, and the drafter
  // runs no prompt; only where there is nothing to follow it runs the text itself.
  FollowSequence follow = {};
};

// Keeps one sequence of the model per text. A draft takes one pass a level, over the nodes of all
// texts that the level expands. Accepted tokens are never recomputed: the nodes that were run wait
// in the sequence, and after the round the keys and values of the accepted path stay; only a last
// token that was proposed but not run, and the verifier's own, are fed when the next draft begins.
// Where verification asks what follows such a last token, it is run then.
class ModelDrafter final : public Drafter {
 public:
  // Tokens below the smaller of the two vocabulary sizes mean the same to both models (many
  // families pad their output matrix to different sizes); others are never drafted.
  ModelDrafter(std::unique_ptr<LanguageModel> model, int target_vocabulary_size,
               ModelDrafting drafting = {});
  ~ModelDrafter() override;

  std::string_view name() const override { return drafting_.name; }
  DrafterTraits traits() const override {
    return {.has_draft_prob = true, .prefix_determined = drafting_.prefix_determined};
  }
  void begin(const Context& context) override;
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override;
  void propose(std::span<DraftJob> jobs) override;
  bool draft_at(const Context& context, const DraftTree& tree, int node, Distribution& draft_prob,
                Distribution* raw_draft) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;
  void rewind(const Context& context, std::size_t n_common) override;
  std::int64_t n_passes() const override { return n_passes_; }

  const LanguageModel& model() const { return *model_; }

 private:
  // One text's state: the model's sequence, and which of its pending nodes each node of the last
  // draft is (-1 for those that were not run).
  struct Text {
    std::unique_ptr<Sequence> sequence;
    std::vector<int> pending;
    int length = 0;  // of the next draft, where it follows acceptance
  };
  struct Growing;  // a draft on its way
  bool can_run(std::span<const TokenId> tokens) const;
  void catch_up(Sequence& sequence, std::span<const TokenId>& feed);
  void run_contexts();
  void run_frontiers();
  void drop_complete();

  std::unique_ptr<LanguageModel> model_;
  ModelDrafting drafting_;
  std::size_t shared_vocabulary_;
  std::unordered_map<SequenceId, Text> texts_;
  std::int64_t n_passes_ = 0;

  // Reused from round to round.
  ForwardOutput output_;
  std::vector<std::unique_ptr<TreeGrowth>> growths_;
  std::vector<Growing> growing_;
  std::vector<TokenBlock> blocks_;
  std::vector<TokenId> block_tokens_;
  std::vector<int> block_parents_;
  std::vector<int> path_;
  PenalisedRow penalised_;
};

// "model:PATH[,length=K,schedule=constant|heuristic,confidence=C,updates=DIR,
// vocabulary=same|shared|text]".
DrafterPlan read_model_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_MODEL_DRAFTER_H_
