// How a draft tree is judged: which path stands, and which token follows it.
#ifndef OUTRIDER_SPECULATE_ACCEPTANCE_H_
#define OUTRIDER_SPECULATE_ACCEPTANCE_H_

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

// What a round came to. Reused from round to round.
struct Verdict {
  std::vector<int> path;    // accepted nodes, the root left out; each the parent of the next
  TokenId next = kNoToken;  // the token after them
  bool corrected = false;   // next replaces a rejected child; else it is the bonus token of a leaf
  Distribution next_prob;   // the law `next` was drawn from
  // What each position of the path and, last, that of `next` cost against the target.
  std::vector<RuleCost> costs;

  // What the walk works with. Says nothing; here because it is kept from round to round as well.
  struct Judged {
    int node = 0;
    double weight = 1;
    int last_child = 0;      // the child judged last, the node itself before the first
    bool looked_at = false;  // rule_prob and cost are known
    Distribution rule_prob;  // what is left of it
    RuleCost cost;
  };
  std::vector<Judged> judged;
  Distribution proposal;

  // Room for drafts of n_drafted tokens.
  void reserve(int n_drafted) {
    path.reserve(static_cast<std::size_t>(n_drafted));
    costs.reserve(static_cast<std::size_t>(n_drafted) + 1);
    judged.resize(std::max(judged.size(), static_cast<std::size_t>(n_drafted) + 1));
  }
};

// What the drafter's draws are keyed by, so that verification can rely on it.
enum class DraftNoise {
  fresh,    // noise of this round's own: Purpose::draft
  coupled,  // the noise plain sampling would use at the token's position: Purpose::token
};

// Stateless and thread-safe. The joint law of what verify emits, round after round, is the rule's
// own process, whatever the drafter proposed, as long as every sampled child is in the tree; and
// for a rule that needs draft_prob, as long as that is a function of the prefix. Typical
// acceptance, the Big-Little decoder and FLy (typical.h, bild.h, fly.h) follow no rule: what they
// emit depends on the draft.
class Acceptance {
 public:
  virtual ~Acceptance() = default;
  virtual std::string_view name() const = 0;
  virtual DraftNoise draft_noise() const { return DraftNoise::fresh; }
  // What it, or its rule, asks of the drafter and of the request.
  virtual RuleNeeds needs() const { return {}; }
  // Whether the law at a position is a function of the prefix if the drafter's distributions are.
  virtual bool prefix_determined() const { return !needs().draft_prob || needs().leaf_draft; }
  // Whether verify() refuses trees with siblings.
  virtual bool chains_only() const { return false; }
  // How deep drafts have to be allowed to be; 0: the shape may draft nothing at all.
  virtual int least_depth() const { return 0; }
  virtual void verify(const DraftTree& tree, NodeViews& views, Chance& chance,
                      Verdict& verdict) const = 0;
};

// Fills verdict.costs for an acceptance without a rule, whose path stands given the draft: a token
// that stands costs what a point mass at it would, the token after them nothing.
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

#endif  // OUTRIDER_SPECULATE_ACCEPTANCE_H_
