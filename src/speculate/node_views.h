// Everything a rule or an acceptance may look at: probabilities, never a model.
#ifndef OUTRIDER_SPECULATE_NODE_VIEWS_H_
#define OUTRIDER_SPECULATE_NODE_VIEWS_H_

#include "outrider/types.h"
#include "sampling/distribution.h"

namespace outrider {

// The two models' distributions at the nodes of one draft tree, computed when first asked for. A
// reference stays valid for the round. Not thread-safe.
class NodeViews {
 public:
  virtual ~NodeViews() = default;

  // After the whole sampling transform, with the penalties of the node's own path.
  virtual const Distribution& target(int node) = 0;
  // The drafter's, through the same transform; null where it has none. At a node where the draft
  // ended it costs a step of the drafter, and is there only for a rule that said it needs it
  // (RuleNeeds::leaf_draft).
  virtual const Distribution* draft(int node) = 0;

  // After bias and penalties, before temperature and truncation: what deferral decisions look at.
  virtual const Distribution& raw_target(int node) = 0;
  // The drafter's, likewise; null where draft(node) is, and unless the rule needs it
  // (RuleNeeds::raw_draft).
  virtual const Distribution* raw_draft(int node) = 0;

  virtual bool is_leaf(int node) const = 0;

  // What a rule with a budget for the whole text goes by. Everything before the root was emitted,
  // and each position's rule_prob is a function of the prefix, so its cost is one too.
  virtual int parent(int node) const = 0;  // -1 for the root
  // The sum of KL(rule_prob || target_prob), nats, over the text's positions up to the root's own.
  virtual double rule_kl_before_root() const = 0;
  // Room for one number per node that a rule wants to find again this round; NaN when it begins.
  virtual double& note(int node) = 0;

  // Whether, of the tokens `open` and `close`, `open` stood last in the text up to `node`, whose
  // own token counts: what stands in the prompt, was emitted, or is drafted before it.
  virtual bool is_open(int node, TokenId open, TokenId close) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_NODE_VIEWS_H_
