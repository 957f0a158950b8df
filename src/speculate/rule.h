// A rule: a map from (draft_prob, target_prob) at a node to the distribution that is really
// emitted.
#ifndef OUTRIDER_SPECULATE_RULE_H_
#define OUTRIDER_SPECULATE_RULE_H_

#include "sampling/distribution.h"
#include "speculate/node_views.h"

namespace outrider {

// T(draft, target) of "Faster Cascades via Speculative Decoding" (Narasimhan et al., 2024), eq. 4.
// Stateless and thread-safe.
class Rule {
 public:
  virtual ~Rule() = default;
  virtual const char* name() const = 0;

  // Writes rule_prob at `node`, computed from the node's unmodified distributions.
  virtual void rule_prob(NodeViews& views, int node, Distribution& out) const = 0;
};

// rule_prob = target_prob: lossless speculation.
class ExactRule final : public Rule {
 public:
  const char* name() const override { return "exact"; }
  void rule_prob(NodeViews& views, int node, Distribution& out) const override {
    out = views.target(node);
  }
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULE_H_
