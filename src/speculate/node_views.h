// Everything a rule or an acceptance may look at: probabilities, never a model.
#ifndef OUTRIDER_SPECULATE_NODE_VIEWS_H_
#define OUTRIDER_SPECULATE_NODE_VIEWS_H_

#include "sampling/distribution.h"

namespace outrider {

// The two models' distributions at the nodes of one draft tree, computed when first asked for. A
// reference stays valid for the round. Not thread-safe.
class NodeViews {
 public:
  virtual ~NodeViews() = default;

  // After the whole sampling transform, with the penalties of the node's own path.
  virtual const Distribution& target(int node) = 0;
  // The drafter's, through the same transform; null where it has none. (At a leaf that was never
  // expanded it is computed on demand, for rules whose bonus token needs it.)
  virtual const Distribution* draft(int node) = 0;

  // After bias and penalties, before temperature and truncation: what deferral decisions look at.
  virtual const Distribution& raw_target(int node) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_NODE_VIEWS_H_
