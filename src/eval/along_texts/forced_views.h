// SPDX-License-Identifier: Apache-2.0
// A rule's view of one position of a given text.
#ifndef OUTRIDER_EVAL_ALONG_TEXTS_FORCED_VIEWS_H_
#define OUTRIDER_EVAL_ALONG_TEXTS_FORCED_VIEWS_H_

#include <limits>

#include "sampling/distribution.h"
#include "speculate/node_views.h"

namespace outrider::eval {

// Both models' distributions of the next token: raw, and after one transform.
struct PositionDistributions {
  const Distribution* target = nullptr;
  const Distribution* raw_target = nullptr;
  const Distribution* draft = nullptr;  // null, like raw_draft, if the drafter has none
  const Distribution* raw_draft = nullptr;
};

// Node 0 is the position, within a draft: never a leaf, so that a rule with bonus=target shows its
// effect on drafted tokens. The pointers must stay valid.
class ForcedViews final : public NodeViews {
 public:
  // rule_kl: the rule's cost on the text's positions before this one, nats.
  ForcedViews(const PositionDistributions& dists, double rule_kl)
      : dists_(dists), rule_kl_(rule_kl) {}

  const Distribution& target(int) override { return *dists_.target; }
  const Distribution* draft(int) override { return dists_.draft; }
  const Distribution& raw_target(int) override { return *dists_.raw_target; }
  const Distribution* raw_draft(int) override { return dists_.raw_draft; }
  bool is_leaf(int) const override { return false; }
  int parent(int) const override { return -1; }
  double rule_kl_before_root() const override { return rule_kl_; }
  double& note(int) override { return note_; }
  // No rule that is measured here reads marks (make_rule).
  bool is_open(int, TokenId, TokenId) override { return false; }

 private:
  PositionDistributions dists_;
  double rule_kl_;
  double note_ = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_ALONG_TEXTS_FORCED_VIEWS_H_
