// SPDX-License-Identifier: Apache-2.0
// What rules and acceptances may read: probabilities, never a model.
#ifndef OUTRIDER_SPECULATE_NODE_VIEWS_H_
#define OUTRIDER_SPECULATE_NODE_VIEWS_H_

#include "outrider/types.h"
#include "sampling/distribution.h"

namespace outrider {

// Both models' distributions at the nodes of one draft tree, computed when first asked for.
// References are valid for the round. Not thread-safe.
class NodeViews {
 public:
  virtual ~NodeViews() = default;

  // After the whole sampling transform, with the penalties of the node's own path.
  virtual const Distribution& target(int node) = 0;
  // The drafter's, after the same transform; null if it has none. At a node where the draft ended
  // it costs a step of the drafter, and exists only if the rule needs it (RuleNeeds::leaf_draft).
  virtual const Distribution* draft(int node) = 0;

  // After bias and penalties, before temperature and truncation: the input of deferral decisions.
  virtual const Distribution& raw_target(int node) = 0;
  // The drafter's, before temperature and truncation; null where draft(node) is, and unless the
  // rule needs it (RuleNeeds::raw_draft).
  virtual const Distribution* raw_draft(int node) = 0;

  virtual bool is_leaf(int node) const = 0;

  // For rules with a budget for the whole text. Everything before the root was emitted, and each
  // position's rule_prob is a function of the prefix, so its cost is one too.
  virtual int parent(int node) const = 0;  // -1 for the root
  // The sum of KL(rule_prob || target_prob), nats, over the text's positions up to the root's own.
  virtual double rule_kl_before_root() const = 0;
  // Storage of one number for each node, for a rule to use within the round; initially NaN.
  virtual double& note(int node) = 0;

  // Whether `open` is the last of the tokens `open` and `close` up to and including `node`: in the
  // prompt, in emitted tokens, or in the drafted path.
  virtual bool is_open(int node, TokenId open, TokenId close) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_NODE_VIEWS_H_
