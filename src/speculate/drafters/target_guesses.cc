#include "speculate/drafters/target_guesses.h"

#include <cstddef>
#include <span>

namespace outrider {

TokenId TargetGuesses::behind(const RoundResult& result, int node, int n_standing) {
  std::span<const float> logits = result.target_logits(node);
  const Transform& transform = *result.context->transform;
  if (transform.has_penalties()) {
    penalised_.assign(logits.begin(), logits.end());
    result.tree->path_tokens(node, path_);
    transform.penalise(penalised_, *result.context->history,
                       std::span(path_).subspan(static_cast<std::size_t>(n_standing)));
    logits = penalised_;
  }
  likeliest_tokens(logits, 1, likeliest_);
  return likeliest_.front();
}

}  // namespace outrider
