// SPDX-License-Identifier: Apache-2.0
// Several drafters in sequence: after one has drafted its length, the next continues.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_RELAY_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_RELAY_DRAFTER_H_

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
#include "speculate/drafters/composite/composite_drafter.h"
#include "speculate/drafters/composite/grafted_draft.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// The horizontal cascade of Chen et al., "Cascade speculative drafting" (2024), section 3.2: later
// tokens of a draft are seldom reached, so a cheaper drafter suffices for them. Each part drafts in
// its own shape, within the whole's limits. The first part drafts after the text. Each other part
// drafts after the deepest node of the parts before it (the first of the deepest), as if these
// tokens were accepted. A stop rule of the whole draft ends it; a part's own confidence ends that
// part.
//
// A part's tokens have the distribution that its view of the text gives, so drafts are verified as
// any other. Which part drafts a position depends on where the round begins.
class RelayDrafter final : public Drafter {
 public:
  // At least one part; only the first may read features of the target.
  RelayDrafter(std::vector<CompositeDrafter::Part> parts, const DrafterTraits& traits);
  ~RelayDrafter() override;

  std::string_view name() const override { return "relay"; }
  DrafterTraits traits() const override { return traits_; }
  std::span<const int> feature_layers() const override {
    return parts_.front().drafter->feature_layers();
  }
  bool uses_target_cache() const override;
  void begin(const Context& context) override;
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override;
  void propose(std::span<DraftJob> jobs) override;
  bool draft_at(const Context& context, const DraftTree& tree, int node, Distribution& draft_prob,
                Distribution* raw_draft) override;
  void observe(std::span<const RoundResult> results) override;
  void rewind(const Context& context, std::size_t n_common) override;
  void end(SequenceId id) override;
  std::int64_t n_passes() const override;

 private:
  // Ends a part's draft where the whole's rule does, which ends the relay, or below the part's own
  // confidence.
  class Stop final : public StopRule {
   public:
    Stop(const StopRule* whole, double confidence) : whole_(whole), confidence_(confidence) {}
    bool stop_after(TokenId token, double raw_prob) const override;
    bool ended() const { return ended_; }

   private:
    const StopRule* whole_;
    double confidence_;
    mutable bool ended_ = false;
  };

  // A part's view of a text.
  struct PartOfText {
    std::vector<TokenId> tokens;  // the tokens it sees; unused for the first part
    TokenHistory history;         // unused for the first part
    Context context;
    GraftedDraft draft;
    RekeyedChance chance;
    std::optional<Stop> stop;
    bool asked = false;  // for a draft since the last observe()
  };
  struct State {
    std::vector<PartOfText> parts;
  };
  void show(std::size_t part, PartOfText& own, const DraftJob& job, int leaf);
  bool ask(std::size_t part, DraftJob& whole);
  // Updates the first part, which follows the text even without drafts.
  static void follow(PartOfText& first, const Context& context, const DraftTree& tree);
  void move_on(PartOfText& own, const RoundResult& result);

  std::vector<CompositeDrafter::Part> parts_;
  std::vector<std::shared_ptr<const TreeShape>> chains_;  // as deep as each part's shape
  DrafterTraits traits_;
  std::unordered_map<SequenceId, State> states_;

  // Reused from round to round.
  std::vector<DraftJob*> going_on_;
  std::vector<DraftJob> jobs_;
  std::vector<RoundResult> results_;
  std::vector<TokenId> path_;
};

// "relay:A+B+...". Throws UsageError for fewer than two parts, for invalid specs, and if a part
// other than the first reads features of the target.
DrafterPlan read_relay_drafter(std::span<const std::string> parts);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_RELAY_DRAFTER_H_
