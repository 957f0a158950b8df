// SPDX-License-Identifier: Apache-2.0
// The draft vocabulary of a head with a smaller output matrix, and comparisons of the head's rows
// with the target's.
#ifndef OUTRIDER_TRAIN_LOSSES_DRAFTED_TOKENS_H_
#define OUTRIDER_TRAIN_LOSSES_DRAFTED_TOKENS_H_

#include <torch/torch.h>

#include <vector>

#include "outrider/types.h"

namespace outrider::train {

class DraftedTokens {
 public:
  // ids: ascending; empty: the whole vocabulary of the target. Throws Error for an invalid list.
  DraftedTokens(const std::vector<TokenId>& ids, int vocabulary_size);

  const torch::Tensor& ids() const { return ids_; }  // (n_drafted) int64
  // The tensors "d2t" and "t2d" of public checkpoints. d2t: draft id i is token i + d2t[i]. t2d:
  // whether a token is in the draft vocabulary.
  torch::Tensor offsets() const;
  const torch::Tensor& is_drafted() const { return is_drafted_; }  // (vocabulary_size) boolean

  // The target's distributions at rows of any shape (...).
  struct Distributions {
    torch::Tensor logits;          // (..., vocabulary_size)
    torch::Tensor drafted_logits;  // (..., n_drafted)
    torch::Tensor best;            // (...) int64: the likeliest token
    torch::Tensor counts;          // (...) boolean: the draft vocabulary has it
  };
  Distributions distributions_of(const torch::Tensor& logits) const;

  // Comparisons with a head's logits (..., n_drafted), row by row. Cross-entropy from the target's
  // distribution, renormalised over the draft vocabulary; 0 where the target's likeliest token is
  // not in it.
  static torch::Tensor losses(const torch::Tensor& logits, const Distributions& dists);
  // Without gradients. agrees: whether both have the same likeliest token (of equal ones the lowest
  // id). overlaps: the sum of min(head's probability, target's probability) over the whole
  // vocabulary.
  torch::Tensor agrees(const torch::Tensor& logits, const Distributions& dists) const;
  torch::Tensor overlaps(const torch::Tensor& logits, const Distributions& dists) const;

 private:
  torch::Tensor ids_;
  torch::Tensor is_drafted_;
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_LOSSES_DRAFTED_TOKENS_H_
