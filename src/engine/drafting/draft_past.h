// SPDX-License-Identifier: Apache-2.0
// Statistics of recent drafts: how deep they were accepted, and how reliable the drafter's own
// probabilities were. They are the input of the next round's plan.
#ifndef OUTRIDER_ENGINE_DRAFTING_DRAFT_PAST_H_
#define OUTRIDER_ENGINE_DRAFTING_DRAFT_PAST_H_

#include <array>
#include <cstddef>
#include <span>

#include "speculate/draft_tree.h"

namespace outrider {

// Counts by depth with exponential decay. Not thread-safe.
class DraftPast {
 public:
  static constexpr int kDeepest = 32;  // deeper levels are not distinguished

  // The weight of a prior, in rounds, beside the text's own counts.
  static constexpr double kPriorRounds = 8;

  // keeps: the share of the counts that forget() leaves, so about 1 / (1 - keeps) rounds count.
  explicit DraftPast(double keeps, double prior_rounds = kPriorRounds)
      : keeps_(keeps), prior_rounds_(prior_rounds) {}

  // Called before each round that drafts.
  void forget();
  // Adds a round whose draft could be `limit` >= 1 deep and was accepted to depth `accepted`.
  void add(const DraftTree& tree, int limit, int accepted);
  // Replaces all counts by n_rounds rounds with one drafted token each, of which the share
  // `accepted` was accepted.
  void suppose(double n_rounds, double accepted);

  // Expected accepted tokens at a depth in a round that may draft so deep, and the nodes it costs.
  struct Depth {
    double accepted = 0;
    double nodes = 0;
  };
  // Estimates depths 1 to outlook.size(), at most kDeepest: from these counts and, as far as they
  // are few, from `prior` (may be null). A depth without counts is estimated better than the one
  // above it, so that it is tried where that pays and then known.
  void look_ahead(const DraftPast* prior, std::span<Depth> outlook) const;
  // Rounds that count.
  double n_rounds() const { return counts_[0].rounds; }

  // The counts of one depth; all that is saved to a file.
  struct Counts {
    double rounds = 0;   // that could draft so deep
    double nodes = 0;    // at this depth in them
    double reached = 0;  // of the rounds, those accepted down to the depth above
    double accepted = 0;
  };
  using AllCounts = std::array<Counts, kDeepest>;
  const AllCounts& counts() const { return counts_; }
  void set_counts(const AllCounts& counts) { counts_ = counts; }

 private:
  double keeps_;
  double prior_rounds_;
  AllCounts counts_{};
};

// The acceptance rate of a drafted token, given that those before it were accepted, by the
// drafter's probability of it. Not thread-safe.
class TrustCurve {
 public:
  // raw_prob: as in StopRule::stop_after, 0..1.
  void add(double raw_prob, bool stood);
  double stands(double raw_prob) const;
  // The rate of a token whose probability is unknown.
  double mean() const;
  // Drops all counts: the drafter's probabilities are trusted again.
  void forget_all() { counts_ = {}; }

  static constexpr int kClasses = 10;
  // The counts of a class of probabilities; all that is saved to a file.
  struct Counts {
    double judged = 0;
    double stood = 0;
  };
  using AllCounts = std::array<Counts, kClasses>;
  const AllCounts& counts() const { return counts_; }
  void set_counts(const AllCounts& counts) { counts_ = counts; }

 private:
  static int class_of(double raw_prob);

  AllCounts counts_{};
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFTING_DRAFT_PAST_H_
