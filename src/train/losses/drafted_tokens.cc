// SPDX-License-Identifier: Apache-2.0
#include "train/losses/drafted_tokens.h"

#include <fmt/format.h>

#include <limits>

#include "outrider/error.h"
#include "train/fused/fused_steps.h"
#include "train/training_device.h"

namespace outrider::train {

using torch::Tensor;

namespace {

// The draft vocabulary as a tensor (n_drafted) int64; all tokens if `ids` is empty. Throws Error
// unless ids ascend strictly and are in the vocabulary.
Tensor checked_ids(const std::vector<TokenId>& ids, int vocabulary_size) {
  if (ids.empty()) return torch::arange(vocabulary_size, torch::kInt64).to(training_device());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocabulary_size || (i > 0 && ids[i] <= ids[i - 1])) {
      throw Error("train eagle", "draft vocabulary",
                  fmt::format("ascending ids below the target's {}", vocabulary_size),
                  fmt::format("{}", ids[i]));
    }
  }
  return torch::tensor(ids, torch::kInt64).to(training_device());
}

}  // namespace

DraftedTokens::DraftedTokens(const std::vector<TokenId>& ids, int vocabulary_size)
    : ids_(checked_ids(ids, vocabulary_size)),
      is_drafted_(torch::zeros({vocabulary_size}, ids_.options().dtype(torch::kBool))) {
  is_drafted_.index_fill_(0, ids_, true);
}

Tensor DraftedTokens::offsets() const { return ids_ - torch::arange(ids_.size(0), ids_.options()); }

DraftedTokens::Distributions DraftedTokens::distributions_of(const Tensor& logits) const {
  const Tensor best = logits.argmax(-1);
  return {.logits = logits,
          .drafted_logits = logits.index_select(-1, ids_),
          .best = best,
          .counts = is_drafted_.index_select(0, best.flatten()).view_as(best)};
}

Tensor DraftedTokens::losses(const Tensor& logits, const Distributions& dists) {
  // Rows whose likeliest token the head cannot draft have the loss 0.
  return compare_distributions(logits, dists.drafted_logits).cross_entropy * dists.counts;
}

Tensor DraftedTokens::agrees(const Tensor& logits, const Distributions& dists) const {
  const torch::NoGradGuard no_grad;
  // argmax() takes the first of equal logits. Ids ascend, so that is the lowest id here, as in
  // `best`.
  const Tensor chosen = ids_.index_select(0, logits.argmax(-1).flatten()).view_as(dists.best);
  return (chosen == dists.best).to(logits.scalar_type());
}

Tensor DraftedTokens::overlaps(const Tensor& logits, const Distributions& dists) const {
  const torch::NoGradGuard no_grad;
  // The head gives tokens outside its vocabulary the probability 0.
  const Tensor all = torch::full_like(dists.logits, -std::numeric_limits<double>::infinity())
                         .index_copy(-1, ids_, logits);
  return compare_distributions(all, dists.logits).overlap;
}

}  // namespace outrider::train
