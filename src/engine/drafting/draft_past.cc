// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/draft_past.h"

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

// The weight of a guess in rounds: small, so that a wrong one is soon corrected.
constexpr double kGuessRounds = 1;
// The guess for a first token without any data: small models of a large one's family reach 0.5 to
// 0.9 (Leviathan et al. 2023, table 3).
constexpr double kFirstGuess = 0.75;

// The decay of a TrustCurve class per token, and the weight of a guess in tokens.
constexpr double kTrustKeeps = 0.99;
constexpr double kTrustGuess = 4;

}  // namespace

void DraftPast::forget() {
  for (Counts& counts : counts_) {
    counts.rounds *= keeps_;
    counts.nodes *= keeps_;
    counts.reached *= keeps_;
    counts.accepted *= keeps_;
  }
}

void DraftPast::suppose(double n_rounds, double accepted) {
  counts_ = {};
  counts_[0] = {
      .rounds = n_rounds, .nodes = n_rounds, .reached = n_rounds, .accepted = n_rounds * accepted};
}

void DraftPast::add(const DraftTree& tree, int limit, int accepted) {
  const int deepest = std::min(limit, kDeepest);
  for (int depth = 1; depth <= deepest; ++depth) {
    Counts& counts = counts_[static_cast<std::size_t>(depth - 1)];
    counts.rounds += 1;
    if (accepted >= depth - 1) counts.reached += 1;
    if (accepted >= depth) counts.accepted += 1;
  }
  for (int node = 1; node < tree.n_nodes(); ++node) {
    // A scratch node costs a row like any other; it counts for the first depth.
    const int depth = node <= tree.n_drafted() ? tree.node(node).depth : 1;
    if (depth <= deepest) counts_[static_cast<std::size_t>(depth - 1)].nodes += 1;
  }
}

void DraftPast::look_ahead(const DraftPast* prior, std::span<Depth> outlook) const {
  std::array<Depth, kDeepest> before;
  if (prior != nullptr) prior->look_ahead(nullptr, std::span(before).first(outlook.size()));
  double survival = 1;         // of the depth above
  double before_survival = 1;  // the same, by the prior
  double guess = kFirstGuess;
  for (std::size_t index = 0; index < outlook.size(); ++index) {
    const Counts& own = counts_[index];
    double weight = kGuessRounds;
    double stands = guess;
    double nodes = survival;  // the draft reaches a depth as often as the one above is accepted
    if (prior != nullptr) {
      weight = prior_rounds_;
      stands = before_survival > 0 ? before[index].accepted / before_survival : 0;
      nodes = before[index].nodes;
      before_survival = before[index].accepted;
    }
    stands = (own.accepted + weight * stands) / (own.reached + weight);
    survival *= stands;
    outlook[index] = {.accepted = survival,
                      .nodes = (own.nodes + weight * nodes) / (own.rounds + weight)};
    guess = std::sqrt(stands);
  }
}

// Classes are finer towards 1, where drafts continue.
int TrustCurve::class_of(double raw_prob) {
  constexpr std::array<double, kClasses - 1> kBounds = {0.05, 0.15, 0.3,  0.45, 0.6,
                                                        0.75, 0.87, 0.95, 0.99};
  return static_cast<int>(std::upper_bound(kBounds.begin(), kBounds.end(), raw_prob) -
                          kBounds.begin());
}

void TrustCurve::add(double raw_prob, bool stood) {
  Counts& counts = counts_[static_cast<std::size_t>(class_of(raw_prob))];
  counts.judged = counts.judged * kTrustKeeps + 1;
  counts.stood = counts.stood * kTrustKeeps + (stood ? 1 : 0);
}

// The guess is that the drafter's probabilities are calibrated.
double TrustCurve::stands(double raw_prob) const {
  const Counts& counts = counts_[static_cast<std::size_t>(class_of(raw_prob))];
  return (counts.stood + kTrustGuess * raw_prob) / (counts.judged + kTrustGuess);
}

double TrustCurve::mean() const {
  double judged = kTrustGuess;
  double stood = kTrustGuess * kFirstGuess;
  for (const Counts& counts : counts_) {
    judged += counts.judged;
    stood += counts.stood;
  }
  return stood / judged;
}

}  // namespace outrider
