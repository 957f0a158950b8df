#include "speculate/drafters/target_guesses.h"

#include <cstddef>
#include <span>

#include "sampling/penalised_row.h"

namespace outrider {

TokenId TargetGuesses::behind(const RoundResult& result, int node, int n_standing) {
  const Transform& transform = *result.context->transform;
  std::span<const TokenId> path;
  if (transform.changes_logits(*result.context->history)) {
    result.tree->path_tokens(node, path_);
    path = std::span(path_).subspan(static_cast<std::size_t>(n_standing));
  }
  const PenalisedRow logits(transform, result.target_logits(node), *result.context->history, path,
                            replaced_);
  return likeliest_token(logits.row());
}

}  // namespace outrider
