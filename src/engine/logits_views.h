// The rule's view of one stream's draft tree, computed from the target's logits when asked for.
#ifndef OUTRIDER_ENGINE_LOGITS_VIEWS_H_
#define OUTRIDER_ENGINE_LOGITS_VIEWS_H_

#include <vector>

#include "model/language_model.h"
#include "sampling/transform.h"
#include "speculate/draft_tree.h"
#include "speculate/node_views.h"

namespace outrider {

// Row `first_row + node` of the pass holds the logits that follow `node`. Every distribution is
// computed at most once a round; storage is kept from round to round.
class LogitsViews final : public NodeViews {
 public:
  LogitsViews(const Transform& transform, const TokenHistory& history)
      : transform_(&transform), history_(&history) {}

  // Looks at a new round. tree and output stay alive and unchanged for the round.
  void reset(const DraftTree& tree, const ForwardOutput& output, int first_row);

  const Distribution& target(int node) override;
  const Distribution* draft(int node) override;
  const Distribution& raw_target(int node) override;

  std::span<const float> logits(int node) const { return output_->logits_row(first_row_ + node); }

 private:
  struct Cached {
    bool known = false;
    Distribution distribution;
  };
  std::span<const float> penalised(int node);

  const Transform* transform_;
  const TokenHistory* history_;
  const DraftTree* tree_ = nullptr;
  const ForwardOutput* output_ = nullptr;
  int first_row_ = 0;
  std::vector<Cached> targets_;
  std::vector<Cached> raw_targets_;
  std::vector<float> penalised_;
  std::vector<TokenId> path_;
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_LOGITS_VIEWS_H_
