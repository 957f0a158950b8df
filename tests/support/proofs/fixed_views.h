// SPDX-License-Identifier: Apache-2.0
// The distributions of one position, for tests of rules and acceptances without a tree or a model.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_FIXED_VIEWS_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_FIXED_VIEWS_H_

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "sampling/transform.h"
#include "speculate/node_views.h"

namespace outrider::test {

// Every node has the stored distributions and the same note. A test sets the fields.
struct FixedViews : NodeViews {
  Distribution draft_prob, target_prob, raw_draft_prob, raw_target_prob;
  bool has_draft = true;  // false: draft() and raw_draft() are null
  bool leaf = false;
  bool open = false;  // is_open() of any tokens
  double spent = 0;   // rule_kl_before_root(), nats

  const Distribution& target(int) override { return target_prob; }
  const Distribution* draft(int) override { return has_draft ? &draft_prob : nullptr; }
  const Distribution& raw_target(int) override { return raw_target_prob; }
  const Distribution* raw_draft(int) override { return has_draft ? &raw_draft_prob : nullptr; }
  bool is_leaf(int) const override { return leaf; }
  int parent(int) const override { return -1; }
  double rule_kl_before_root() const override { return spent; }
  double& note(int) override { return note_; }
  bool is_open(int, TokenId, TokenId) override { return open; }

 private:
  double note_ = std::numeric_limits<double>::quiet_NaN();
};

// From both models' logits (vocabulary_size): the distributions after the transform, and the raw
// ones, before temperature and truncation.
inline FixedViews views_of(const std::vector<float>& draft_logits,
                           const std::vector<float>& target_logits, const Transform& transform) {
  FixedViews views;
  transform.distribution(draft_logits, views.draft_prob);
  transform.distribution(target_logits, views.target_prob);
  transform.raw_distribution(draft_logits, views.raw_draft_prob);
  transform.raw_distribution(target_logits, views.raw_target_prob);
  return views;
}

// From the probabilities of tokens 0 to n - 1. The raw distributions equal the transformed ones.
inline FixedViews views_of(std::vector<double> draft, std::vector<double> target) {
  FixedViews views;
  views.draft_prob = views.raw_draft_prob = Distribution::dense(draft);
  views.target_prob = views.raw_target_prob = Distribution::dense(target);
  return views;
}

// n logits (at least 1), normally distributed with deviation 1.5; about one in six is minus
// infinity. In about one row of four the last equals the first, a tie. At least one is finite.
inline std::vector<float> random_logits(int n, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 1.5F);
  std::vector<float> logits(static_cast<std::size_t>(n));
  for (float& logit : logits) {
    logit = random() % 6 == 0 ? -std::numeric_limits<float>::infinity() : normal(random);
  }
  if (random() % 4 == 0) logits.back() = logits.front();
  const std::size_t finite = random() % logits.size();
  if (logits[finite] < -1e30F) logits[finite] = 0.5F;
  return logits;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_FIXED_VIEWS_H_
