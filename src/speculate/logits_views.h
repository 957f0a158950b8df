// SPDX-License-Identifier: Apache-2.0
// The distributions at the nodes of one stream's draft tree, computed from logits when first asked
// for.
#ifndef OUTRIDER_SPECULATE_LOGITS_VIEWS_H_
#define OUTRIDER_SPECULATE_LOGITS_VIEWS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "sampling/penalised_row.h"
#include "sampling/transform.h"
#include "speculate/draft_tree.h"
#include "speculate/drafter.h"
#include "speculate/node_views.h"

namespace outrider {

// Row `first_row + node` of the pass holds the logits that follow `node`. Every distribution is
// computed at most once a round; storage is reused from round to round.
class LogitsViews final : public NodeViews {
 public:
  LogitsViews(const Transform& transform, const TokenHistory& history)
      : transform_(&transform), history_(&history) {}

  // Begins a new round of a text whose cost so far is rule_kl. tree, output and text (the tokens up
  // to the root, included) must stay alive and unchanged until the round's verdict. is_open()
  // assumes that a text only grows from round to round.
  void reset(const DraftTree& tree, const ForwardOutput& output, int first_row,
             std::span<const TokenId> text, double rule_kl);
  // Until the next reset, asks the drafter for its distributions where the draft ended. Both
  // arguments must outlive the round's verdict.
  void ask_at_leaves(Drafter& drafter, const Context& context, bool raw);

  const Distribution& target(int node) override;
  const Distribution* draft(int node) override;
  const Distribution& raw_target(int node) override;
  const Distribution* raw_draft(int node) override;
  bool is_leaf(int node) const override { return tree_->next_child(node, node) < 0; }
  int parent(int node) const override { return tree_->node(node).parent; }
  double rule_kl_before_root() const override { return rule_kl_; }
  double& note(int node) override { return notes_[static_cast<std::size_t>(node)]; }
  bool is_open(int node, TokenId open, TokenId close) override;

  LogitRow logits(int node) const { return output_->logits.row(first_row_ + node); }

 private:
  struct Cached {
    bool known = false;
    Distribution distribution;
  };
  // The drafter's distributions where the draft ended, asked at most once for each node.
  struct LeafDraft {
    bool asked = false;
    bool known = false;
    Distribution draft_prob;
    Distribution raw_draft;
  };
  // Which of two marks came last in the tokens read so far.
  struct Marks {
    TokenId open = kNoToken;
    TokenId close = kNoToken;
    std::size_t n_read = 0;
    bool is_open = false;
  };
  PenalisedRow penalised(int node);
  LeafDraft& leaf_draft(int node);

  const Transform* transform_;
  const TokenHistory* history_;
  const DraftTree* tree_ = nullptr;
  const ForwardOutput* output_ = nullptr;
  int first_row_ = 0;
  std::vector<Cached> targets_;
  std::vector<Cached> raw_targets_;
  double rule_kl_ = 0;
  std::vector<double> notes_;
  std::span<const TokenId> text_;
  Marks marks_;
  Drafter* leaf_drafter_ = nullptr;
  const Context* leaf_context_ = nullptr;
  bool leaf_raw_ = false;
  std::vector<LeafDraft> leaf_drafts_;
  std::vector<TokenLogit> replaced_;
  std::vector<TokenId> path_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_LOGITS_VIEWS_H_
