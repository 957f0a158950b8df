// How deep each text drafts in the next pass: as deep as pays by what passes cost and by what was
// accepted lately, down to not at all. A pure function over measurements.
#ifndef OUTRIDER_ENGINE_STEP_PLAN_H_
#define OUTRIDER_ENGINE_STEP_PLAN_H_

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "engine/pass_times.h"
#include "speculate/draft_tree.h"

namespace outrider {

// What became of drafts lately, by depth: counts that are forgotten. Not thread-safe.
class DraftPast {
 public:
  static constexpr int kDeepest = 32;  // beyond it nothing is told apart

  // keeps: the share of the counts that forget() leaves. Some 1 / (1 - keeps) rounds are known.
  explicit DraftPast(double keeps) : keeps_(keeps) {}

  // Before each round that drafts.
  void forget();
  // A round whose draft could be `limit` deep, at least 1; accepted: how deep it was accepted.
  void add(const DraftTree& tree, int limit, int accepted);

  // Tokens that a depth brings in a round that may draft so deep, and nodes that it costs.
  struct Depth {
    double accepted = 0;
    double nodes = 0;
  };
  // By what is known here, and by `prior` as far as little is (may be null). Optimistic where
  // nothing is known: a draft of one node, accepted.
  Depth at(int depth, const DraftPast* prior) const;
  bool knows(int depth) const { return counts(depth).rounds >= 1; }

 private:
  struct Counts {
    double rounds = 0;  // that could draft so deep
    double accepted = 0;
    double nodes = 0;
  };
  const Counts& counts(int depth) const { return counts_[static_cast<std::size_t>(depth - 1)]; }

  double keeps_;
  std::array<Counts, kDeepest> counts_{};
};

// A text that decodes in the next pass.
struct PlannedText {
  int deepest = 0;                   // its draft at most; 0: it drafts nothing
  bool fixed = false;                // it drafts so deep, whatever that costs
  int drafter = -1;                  // which of the plan's drafters
  const DraftPast* past = nullptr;   // of this text; null for one that drafts nothing
  const DraftPast* prior = nullptr;  // of all texts with its drafter
};

// Writes to `depths` how deep each text is to draft, so that tokens per second are the most:
// (tokens that the texts are expected to get) / (the pass and what the drafters take). levels: of
// each drafter, what a level of drafts takes by the number of texts. n_prompt: rows of prompts in
// the same pass, whose own cost decides nothing.
void plan_drafts(std::span<const PlannedText> texts, const PassTimes& passes,
                 std::span<const PassTimes> levels, int n_prompt, std::vector<int>& depths);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_STEP_PLAN_H_
