// SPDX-License-Identifier: Apache-2.0
// A small language model as drafter: chains and trees from its distribution under the request's
// sampling transform.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_MODEL_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_MODEL_DRAFTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/language_model.h"
#include "speculate/block_builder.h"
#include "speculate/drafter.h"
#include "speculate/drafters/levelwise_drafter.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// The length of drafts if no tree is named.
struct DraftLength {
  int first = kDefaultDraftLength;  // of a text's first draft
  // From then on two levels more after a draft accepted to its end, one less, but at least one,
  // after any other: the schedule "heuristic" of Hugging Face's assisted generation. The length
  // depends on earlier drafts only and is known before the next one begins, so drafts stay exact.
  // false: constant.
  bool follows_acceptance = false;
};

// Makes, from a sequence of the target, a sequence of the drafter with the same kept tokens;
// nullptr if that is not possible.
using FollowSequence = std::function<std::unique_ptr<Sequence>(const Sequence& judged)>;

// The properties of a drafter by a model.
struct ModelDrafting {
  std::string_view name = "model";  // must outlive the drafter
  // As LanguageModel promises; false for a TranslatedModel.
  bool prefix_determined = true;
  DraftLength length = {};
  // Tokens that are run of a text with DraftJob::recent_only. Qwen2.5-Coder 0.5B for 1.5B, twelve
  // texts of Spec-Bench: 64 tokens make them 1.12 times as fast in all, 32 1.03, 128 1.13, whole
  // prompts 1.15. For texts that end within 30 tokens after prompts of 700, 64 tokens give 1.04 and
  // whole prompts 0.80.
  std::size_t n_recent = 64;
  // If set, each draft begins from the target's sequence of the text, and the drafter runs no
  // prompt. It runs the text itself only if there is no such sequence.
  FollowSequence follow = {};
  bool uses_target_cache = false;  // Drafter::uses_target_cache()
};

// Keeps one sequence of the model for each text. Accepted tokens are never recomputed: the nodes of
// a draft are pending in the sequence, and after the round the keys and values of the accepted path
// are kept. Only a last token that was proposed but not run, and the verifier's token, are run when
// the next draft begins. If verification asks for the distribution after such a last token, it is
// run then.
class ModelDrafter : public LevelwiseDrafter {
 public:
  // Tokens below the smaller of the two vocabulary sizes must mean the same to both models (many
  // families pad their output matrix to different sizes); others are never drafted.
  ModelDrafter(std::unique_ptr<LanguageModel> model, int target_vocabulary_size,
               ModelDrafting drafting = {});
  ~ModelDrafter() override;

  std::string_view name() const override { return drafting_.name; }
  DrafterTraits traits() const override {
    return {.has_draft_prob = true, .prefix_determined = drafting_.prefix_determined};
  }
  bool uses_target_cache() const override { return drafting_.uses_target_cache; }
  bool catches_up() const override { return true; }
  std::size_t n_behind(const Context& context) const override;
  std::size_t n_behind_recent(const Context& context) const override;
  std::optional<double> foreseen(const Context& context, std::size_t n_tokens) override;
  void begin(const Context& context) override;
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;
  void begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) override;
  void rewind(const Context& context, std::size_t n_common) override;

  const LanguageModel& model() const { return *model_; }

 protected:
  // One text's state: the model's sequence, and for each node of the last draft its pending node
  // (-1: not run).
  struct State {
    std::unique_ptr<Sequence> sequence;
    std::size_t n_skipped = 0;  // tokens of the text before the sequence's first
    std::vector<int> pending;
    int length = 0;               // of the next draft, if it follows acceptance
    bool lags = false;            // tokens before those that prefill() shows are missing
    bool follows = false;         // the sequence is a copy of the target's
    bool asks_at_leaves = false;  // the sequence is needed after the draft
  };
  int prepare(const DraftJob& job) override;
  bool mixes_levels() const override { return true; }
  RowPer run_level(int level, std::span<const Growing> drafts) override;
  void complete(const Growing& draft) override;
  bool run_node(const Context& context, const DraftTree& tree, int node) override;

  State& state_of(const Context& context) { return states_.at(context.id); }
  LanguageModel& run_model() { return *model_; }
  BlockBuilder& blocks() { return blocks_; }
  bool can_run(std::span<const TokenId> tokens) const;
  static std::span<const TokenId> unseen(const Context& context, const State& state);
  // Runs what is missing of a long text until n_more rows fit into the same pass. No pass is wider
  // than one of prefill.
  void catch_up(const Context& context, State& state, std::size_t n_more = 0);

 private:
  std::size_t where_to_begin(const Context& context, const State& state, bool recent_only) const;
  static void begin_at(State& state, std::size_t n_skipped);
  int room_for(const DraftJob& job);
  void follow(State& state, const Sequence& judged) const;
  static void leave(State& state);

  std::unique_ptr<LanguageModel> model_;
  ModelDrafting drafting_;
  std::unordered_map<SequenceId, State> states_;

  // Reused from round to round.
  BlockBuilder blocks_;
  std::vector<int> path_;
};

// "model:PATH[,length=K,schedule=constant|heuristic,confidence=C,updates=DIR,
// vocabulary=same|shared|text]".
DrafterPlan read_model_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_MODEL_DRAFTER_H_
