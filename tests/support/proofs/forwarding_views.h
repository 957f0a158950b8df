// SPDX-License-Identifier: Apache-2.0
// Views that forward to a round's views.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_FORWARDING_VIEWS_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_FORWARDING_VIEWS_H_

#include "speculate/node_views.h"

namespace outrider::test {

// A base class for mutants, which override some views.
class ForwardingViews : public NodeViews {
 public:
  explicit ForwardingViews(NodeViews& views) : views_(&views) {}
  const Distribution& target(int node) override { return views_->target(node); }
  const Distribution* draft(int node) override { return views_->draft(node); }
  const Distribution& raw_target(int node) override { return views_->raw_target(node); }
  const Distribution* raw_draft(int node) override { return views_->raw_draft(node); }
  bool is_leaf(int node) const override { return views_->is_leaf(node); }
  int parent(int node) const override { return views_->parent(node); }
  double rule_kl_before_root() const override { return views_->rule_kl_before_root(); }
  double& note(int node) override { return views_->note(node); }
  bool is_open(int node, TokenId open, TokenId close) override {
    return views_->is_open(node, open, close);
  }

 protected:
  NodeViews* views_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_FORWARDING_VIEWS_H_
