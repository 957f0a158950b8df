// SPDX-License-Identifier: Apache-2.0
// The base of drafters made of several others: every part follows the text, drafts its own tree,
// and observes the results.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_COMPOSITE_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_COMPOSITE_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sampling/rekeyed_chance.h"
#include "speculate/drafter.h"
#include "speculate/drafters/composite/grafted_draft.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Ends a draft where another rule does, or after a token of lower raw probability.
class PartStop final : public StopRule {
 public:
  PartStop(const StopRule* whole, double confidence) : whole_(whole), confidence_(confidence) {}
  bool stop_after(TokenId token, double raw_prob) const override {
    return raw_prob < confidence_ || (whole_ != nullptr && whole_->stop_after(token, raw_prob));
  }

 private:
  const StopRule* whole_;
  double confidence_;
};

class CompositeDrafter : public Drafter {
 public:
  struct Part {
    std::unique_ptr<Drafter> drafter;
    std::shared_ptr<const TreeShape> shape;         // of drafts if the user names no tree
    double confidence = 0;                          // DrafterPlan::confidence
    std::string spec = {};                          // as the user wrote it
    std::shared_ptr<const TreeShape> deepest = {};  // with DraftJob::choice; null: shape
  };

  // At least one part. `shape` is the composite's shape if the user names no tree. Under it each
  // part drafts in its own shape, under any other in that one.
  CompositeDrafter(std::vector<Part> parts, std::shared_ptr<const TreeShape> shape);
  ~CompositeDrafter() override;

  // The parts' layers, concatenated.
  std::span<const int> feature_layers() const override { return feature_layers_; }
  bool uses_target_cache() const override;
  void begin(const Context& context) override;
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override;
  std::size_t reusable(SequenceId earlier, std::size_t n_common) const override;
  void begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) override;
  void rewind(const Context& context, std::size_t n_common) override;
  bool draft_at(const Context& context, const DraftTree& tree, int node, Distribution& draft_prob,
                Distribution* raw_draft) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;
  std::int64_t n_passes() const override;

 protected:
  std::size_t n_parts() const { return parts_.size(); }
  const Part& part(std::size_t index) const { return parts_[index]; }
  // Calls a part's prefill() with its share of the features.
  void prefill_part(std::size_t part, const Context& context, std::span<const TokenId> tokens,
                    const FeatureRows& features);
  // Starts the round: no part has drafted for these texts.
  void forget_drafts(std::span<const DraftJob> jobs);
  // Lets a part draft for each of these jobs, in a tree and with random keys of its own. `all`: it
  // may use all nodes that the jobs' trees leave. `even`: where a tree that the user named limits
  // all parts together, it may use an equal share with the parts still to come.
  enum class Room { all, even };
  void draft(std::size_t part, std::span<DraftJob* const> jobs, Room room);
  // A part's draft for a text in this round.
  const DraftTree& drafted(std::size_t part, SequenceId id) const;
  // Adds that draft to the job's tree, after existing children; scratch nodes are added later.
  // share_named: a named token (a point mass) that exists there as such is not repeated.
  void graft(std::size_t part, DraftJob& job, bool share_named);
  // Ends the round's drafting: adds the scratch nodes of all parts whose drafts were added or
  // empty, as far as the pass has room. A draft that was not added counts for its part as never
  // drafted.
  void finish(std::span<DraftJob> jobs);

 private:
  struct PartOfText {
    GraftedDraft draft;
    RekeyedChance chance;
    std::optional<PartStop> stop;
  };
  struct State {
    std::vector<PartOfText> parts;
    bool drafted = false;  // since the last observe()
  };
  // Adjusts the parts' trees to what was run: empty if no draft was asked for this round, and
  // without scratch nodes if an outer drafter had no room for them.
  static void match(State& state, const DraftTree& tree);
  // A part's columns of the features.
  FeatureRows features_of(std::size_t part, const FeatureRows& whole) const;

  std::vector<Part> parts_;
  std::vector<int> feature_layers_;
  std::shared_ptr<const TreeShape> shape_;
  std::unordered_map<SequenceId, State> states_;

  // Reused from round to round.
  std::vector<DraftJob> jobs_;
  std::vector<RoundResult> results_;
};

// Throws UsageError if a part of the drafter `name` has updates=: only whole drafters can be
// replaced.
void refuse_updates(const DrafterPlan& part, std::string_view name);

// The plans of all parts of a drafter `name`, written in the `form`. Throws UsageError for fewer
// than two parts and for invalid specs.
std::vector<DrafterPlan> read_parts(std::string_view name, std::string_view form,
                                    std::span<const std::string> specs);
// Limits with room for the drafts of all parts together.
std::shared_ptr<const TreeShape> shape_over(std::span<const DrafterPlan> plans);
std::vector<CompositeDrafter::Part> make_parts(std::span<const DrafterPlan> plans,
                                               const DrafterMaterials& materials);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_COMPOSITE_DRAFTER_H_
