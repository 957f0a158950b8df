// SPDX-License-Identifier: Apache-2.0
// Any rule with bonus=target: after the end of the draft the next token is the target's own, which
// saves one drafter step. The distribution then depends on where rounds end.
#ifndef OUTRIDER_SPECULATE_RULES_TARGET_BONUS_H_
#define OUTRIDER_SPECULATE_RULES_TARGET_BONUS_H_

#include <memory>
#include <utility>

#include "speculate/rule.h"

namespace outrider {

class TargetBonus final : public Rule {
 public:
  explicit TargetBonus(std::unique_ptr<const Rule> rule) : rule_(std::move(rule)) {}
  const char* name() const override { return rule_->name(); }
  RuleNeeds needs() const override {
    RuleNeeds needs = rule_->needs();
    needs.leaf_draft = false;
    return needs;
  }
  void rule_prob(NodeViews& views, int node, Distribution& out) const override {
    if (views.is_leaf(node)) {
      out = views.target(node);
    } else {
      rule_->rule_prob(views, node, out);
    }
  }
  double deferral(NodeViews& views, int node, const Distribution& rule_prob) const override {
    return views.is_leaf(node) ? 1.0 : rule_->deferral(views, node, rule_prob);
  }

 private:
  std::unique_ptr<const Rule> rule_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_TARGET_BONUS_H_
