// SPDX-License-Identifier: Apache-2.0
// A model as drafter whose own tokens are drafted by a cheaper drafter.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_STAGED_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_STAGED_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/language_model.h"
#include "sampling/rekeyed_chance.h"
#include "speculate/acceptances/acceptance.h"
#include "speculate/decoder.h"
#include "speculate/drafters/composite/composite_drafter.h"
#include "speculate/registry/drafter_plan.h"
#include "speculate/registry/drafter_weights.h"
#include "speculate/rule.h"

namespace outrider {

// Staged speculation (Spector and Re, 2023, section 3.2), also the vertical cascade of Chen et al.,
// "Cascade speculative drafting" (2024), section 3.1: if the drafter is a model of some size, its
// steps dominate the cost. A cheaper drafter saves most of them, as a drafter saves those of the
// target.
//
// A draft is a chain of tokens from the decode loop (Decoder), with the model as target and the
// cheaper drafter as its drafter, verified without loss. Each token is drawn from the model's
// distribution, which is recorded for it. So the draft is the one that the model would make alone,
// in fewer passes. Draws of the inner rounds have separate keys.
//
// With a rule in the inner loop the drafts have the rule's distribution instead
// (cascade_drafter.h).
class StagedDrafter final : public Drafter {
 public:
  // The model's vocabulary must be the target's or a part of it with the same ids. The rule's
  // result from the cheaper drafter's distributions must be a function of the prefix.
  StagedDrafter(std::string_view name, std::unique_ptr<LanguageModel> model,
                CompositeDrafter::Part cheaper, std::shared_ptr<const Rule> rule);
  // Without loss.
  StagedDrafter(std::unique_ptr<LanguageModel> model, CompositeDrafter::Part cheaper)
      : StagedDrafter("staged", std::move(model), std::move(cheaper),
                      std::make_shared<ExactRule>()) {}
  ~StagedDrafter() override;

  std::string_view name() const override { return name_; }
  DrafterTraits traits() const override {
    return {.has_draft_prob = true, .prefix_determined = true};
  }
  bool uses_target_cache() const override { return cheaper_.drafter->uses_target_cache(); }
  void begin(const Context& context) override;
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override;
  void propose(std::span<DraftJob> jobs) override;
  bool draft_at(const Context& context, const DraftTree& tree, int node, Distribution& draft_prob,
                Distribution* raw_draft) override;
  void observe(std::span<const RoundResult> results) override;
  void rewind(const Context& context, std::size_t n_common) override;
  void end(SequenceId id) override;
  // Of the model and of the cheaper drafter.
  std::int64_t n_passes() const override { return n_passes_ + cheaper_.drafter->n_passes(); }

 private:
  // The text in the inner loop: between observe() and propose() the committed tokens, after
  // propose() also the drafted ones.
  struct State {
    RekeyedChance chance;
    std::unique_ptr<Stream> stream;
    // State of the draft under construction: its job, its last node, and the inner rounds so far.
    DraftJob* job = nullptr;
    int leaf = 0;
    int n_rounds = 0;
  };
  bool can_run(std::span<const TokenId> tokens) const;
  void catch_up(Stream& stream);
  bool commit(State& state, const Committed& committed) const;

  std::string_view name_;
  std::unique_ptr<LanguageModel> model_;
  CompositeDrafter::Part cheaper_;
  std::shared_ptr<const Rule> rule_;
  PartStop stop_;
  std::unique_ptr<Acceptance> fresh_;
  std::unique_ptr<Acceptance> coupled_;
  Decoder decoder_;
  std::unordered_map<SequenceId, State> states_;
  std::int64_t n_passes_ = 0;

  // Reused from round to round.
  ForwardOutput output_;
  std::vector<Stream*> drafting_;
};

// The parsed model of such a drafter.
struct StagedModel {
  std::string path;
  DrafterWeights weights;
  double confidence = 0;  // DrafterPlan::confidence
};
// Parses "model:PATH", with or without confidence, as a part of a drafter of that name and form.
StagedModel read_staged_model(const std::string& part, std::string_view drafter, const char* form);
// name: a literal. The cheaper drafter and the rule must meet StagedDrafter's conditions.
DrafterPlan plan_staged(const StagedModel& model, const DrafterPlan& cheaper, std::string_view name,
                        std::shared_ptr<const Rule> rule);

// "staged:model:PATH+B" with any drafter B; with more parts B is staged itself. Throws UsageError
// for fewer than two parts, and if a part other than the last is no model.
DrafterPlan read_staged_drafter(std::span<const std::string> parts);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_STAGED_DRAFTER_H_
