// SPDX-License-Identifier: Apache-2.0
// How a draft tree is verified: which path is accepted, and which token follows it.
#ifndef OUTRIDER_SPECULATE_ACCEPTANCES_ACCEPTANCE_H_
#define OUTRIDER_SPECULATE_ACCEPTANCES_ACCEPTANCE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "sampling/chance.h"
#include "speculate/draft_tree.h"
#include "speculate/node_views.h"
#include "speculate/rule.h"

namespace outrider {

// The result of one round for one text. Reused from round to round.
struct Verdict {
  std::vector<int> path;    // accepted nodes without the root; each the parent of the next
  TokenId next = kNoToken;  // the token after them
  bool corrected = false;   // next replaces a rejected child; else it is the bonus token of a leaf
  Distribution next_prob;   // the distribution `next` was drawn from
  // The cost, against the target, of each position of the path and, last, of `next`.
  std::vector<RuleCost> costs;

  // Working storage of the acceptances, no result. It is here so that rounds reuse it.
  struct Judged {
    int node = 0;
    double weight = 1;
    int last_child = 0;      // the child judged last; initially the node itself
    bool looked_at = false;  // rule_prob and cost are known
    Distribution rule_prob;  // what rejections have left of it
    RuleCost cost;
  };
  std::vector<Judged> judged;
  Distribution proposal;

  // Reserves memory for drafts of n_drafted tokens.
  void reserve(int n_drafted) {
    path.reserve(static_cast<std::size_t>(n_drafted));
    costs.reserve(static_cast<std::size_t>(n_drafted) + 1);
    judged.resize(std::max(judged.size(), static_cast<std::size_t>(n_drafted) + 1));
  }
};

// The noise that keys the drafter's draws; verification relies on it.
enum class DraftNoise {
  fresh,    // noise of this round: Purpose::draft
  coupled,  // the noise of plain sampling at the token's position: Purpose::token
};

// Stateless and thread-safe. The joint distribution of all tokens that verify() emits over the
// rounds is that of the rule, whatever the drafter proposed. Conditions: every sampled child is in
// the tree; for a rule that needs draft_prob, draft_prob is a function of the prefix. Typical
// acceptance, the Big-Little decoder and FLy (typical.h, bild.h, fly.h) follow no rule: their
// output depends on the draft.
class Acceptance {
 public:
  virtual ~Acceptance() = default;
  virtual std::string_view name() const = 0;
  virtual DraftNoise draft_noise() const { return DraftNoise::fresh; }
  // What the acceptance, or its rule, needs from the drafter and the request.
  virtual RuleNeeds needs() const { return {}; }
  // Whether the distribution at a position is a function of the prefix if the drafter's
  // distributions are.
  virtual bool prefix_determined() const { return !needs().draft_prob || needs().leaf_draft; }
  // Whether verify() refuses trees with siblings.
  virtual bool chains_only() const { return false; }
  // The depth that drafts must be allowed to have; 0: the shape may draft nothing.
  virtual int min_depth() const { return 0; }
  virtual void verify(const DraftTree& tree, NodeViews& views, Chance& chance,
                      Verdict& verdict) const = 0;
};

// Fills verdict.costs for an acceptance without a rule. Given the draft, an accepted token costs
// what a point mass at it would; the token after the path costs nothing.
void cost_given_draft(const DraftTree& tree, NodeViews& views, Verdict& verdict);

// Generalised multi-round rejection sampling (multi_round.h).
std::unique_ptr<Acceptance> make_multi_round(std::shared_ptr<const Rule> rule);
// Block verification of chains (block.h).
std::unique_ptr<Acceptance> make_block(std::shared_ptr<const Rule> rule);
// Block-type verification of trees, from the leaves up (traversal.h).
std::unique_ptr<Acceptance> make_traversal(std::shared_ptr<const Rule> rule);
// Gumbel coupling (coupled.h).
std::unique_ptr<Acceptance> make_coupled(std::shared_ptr<const Rule> rule);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_ACCEPTANCES_ACCEPTANCE_H_
