// The tokens that a head with a smaller output matrix can say, and its rows beside the target's
// laws.
#ifndef OUTRIDER_TRAIN_DRAFTED_TOKENS_H_
#define OUTRIDER_TRAIN_DRAFTED_TOKENS_H_

#include <torch/torch.h>

#include <vector>

#include "outrider/types.h"

namespace outrider::train {

class DraftedTokens {
 public:
  // ids: ascending; empty: all of the target's. Throws Error for another list.
  DraftedTokens(const std::vector<TokenId>& ids, int vocabulary_size);

  const torch::Tensor& ids() const { return ids_; }  // (n_drafted) int64
  // The tensors "d2t" and "t2d" of public checkpoints: draft id i is token i + d2t[i], and whether
  // a token is among these.
  torch::Tensor offsets() const;
  const torch::Tensor& is_drafted() const { return is_drafted_; }  // (vocabulary_size) boolean

  // What the target says at rows of any shape (...).
  struct Laws {
    torch::Tensor logits;          // (..., vocabulary_size)
    torch::Tensor drafted_logits;  // (..., n_drafted)
    torch::Tensor best;            // (...) int64: the likeliest token
    torch::Tensor counts;          // (...) boolean: the head can say that one
  };
  Laws laws_of(const torch::Tensor& logits) const;

  // How near a head's logits (..., n_drafted) come, row by row.
  // Cross-entropy from the target's law, renormalised over these tokens; 0 where the target's
  // likeliest token is not among them.
  static torch::Tensor losses(const torch::Tensor& logits, const Laws& laws);
  // Without gradients: whether both have the same likeliest token, the lowest id of several; and
  // the sum of min(probability, target's), over the whole vocabulary.
  torch::Tensor agrees(const torch::Tensor& logits, const Laws& laws) const;
  torch::Tensor overlaps(const torch::Tensor& logits, const Laws& laws) const;

 private:
  torch::Tensor ids_;
  torch::Tensor is_drafted_;
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_DRAFTED_TOKENS_H_
