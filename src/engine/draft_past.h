// What became of drafts lately: how deep they were accepted, and what the drafter's own probability
// of a token was worth. What the plan of the next round is made from.
#ifndef OUTRIDER_ENGINE_DRAFT_PAST_H_
#define OUTRIDER_ENGINE_DRAFT_PAST_H_

#include <array>
#include <cstddef>
#include <span>

#include "speculate/draft_tree.h"

namespace outrider {

// Counts by depth, which are forgotten. Not thread-safe.
class DraftPast {
 public:
  static constexpr int kDeepest = 32;  // beyond it nothing is told apart

  // Rounds that a prior counts for beside what is known itself.
  static constexpr double kPriorRounds = 8;

  // keeps: the share of the counts that forget() leaves. Some 1 / (1 - keeps) rounds are known.
  explicit DraftPast(double keeps, double prior_rounds = kPriorRounds)
      : keeps_(keeps), prior_rounds_(prior_rounds) {}

  // Before each round that drafts.
  void forget();
  // A round whose draft could be `limit` deep, at least 1; accepted: how deep it was accepted.
  void add(const DraftTree& tree, int limit, int accepted);
  // Forgets all, and takes it that so many rounds drafted a token, of which the share `accepted`
  // stood.
  void suppose(double n_rounds, double accepted);

  // Tokens that a depth brings in a round that may draft so deep, and nodes that it costs.
  struct Depth {
    double accepted = 0;
    double nodes = 0;
  };
  // Of depths 1 to outlook.size(), at most kDeepest. By what is known here, and by `prior` as far
  // as little is (may be null). Where nothing is known, a depth is thought better than the one
  // above it: it is tried where that pays, and then known.
  void look_ahead(const DraftPast* prior, std::span<Depth> outlook) const;
  // Rounds that are remembered.
  double n_rounds() const { return counts_[0].rounds; }

  // Of a depth; all that there is to know, for a file.
  struct Counts {
    double rounds = 0;   // that could draft so deep
    double nodes = 0;    // at this depth in them
    double reached = 0;  // of the rounds, those that were accepted down to the depth above
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

// How often a drafted token stood, given that those before it did, by the probability that the
// drafter gave it. Not thread-safe.
class TrustCurve {
 public:
  // raw_prob: StopRule::stop_after's, 0..1.
  void add(double raw_prob, bool stood);
  double stands(double raw_prob) const;
  // Of a token whose probability is not known.
  double mean() const;
  // Forgets all: the drafter is believed again.
  void forget_all() { counts_ = {}; }

  static constexpr int kClasses = 10;
  // Of a class of probabilities; all that there is to know, for a file.
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

#endif  // OUTRIDER_ENGINE_DRAFT_PAST_H_
