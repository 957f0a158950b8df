// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/target/target_guesses.h"

#include <cstddef>
#include <span>

#include "sampling/penalised_row.h"

namespace outrider {

// The tokens of a node's path that penalties count; empty without penalties.
std::span<const TokenId> TargetGuesses::counted_path(const RoundResult& result, int node,
                                                     int n_standing) {
  if (!result.context->transform->changes_logits(*result.context->history)) return {};
  result.tree->path_tokens(node, path_);
  return std::span<const TokenId>(path_).subspan(static_cast<std::size_t>(n_standing));
}

TokenId TargetGuesses::behind(const RoundResult& result, int node, int n_standing) {
  const PenalisedRow logits(*result.context->transform, result.target_logits(node),
                            *result.context->history, counted_path(result, node, n_standing),
                            replaced_);
  return likeliest_token(logits.row());
}

std::span<const TokenLogit> TargetGuesses::likeliest_behind(const RoundResult& result, int node,
                                                            int n_standing, int count) {
  const PenalisedRow logits(*result.context->transform, result.target_logits(node),
                            *result.context->history, counted_path(result, node, n_standing),
                            replaced_);
  likeliest_tokens(logits.row(), count, tokens_);
  likeliest_.clear();
  for (const TokenId token : tokens_) likeliest_.push_back({token, logits.row().at(token)});
  return likeliest_;
}

}  // namespace outrider
