// SPDX-License-Identifier: Apache-2.0
// Chooses the blocks of a batch that a head is trained on, and their target tokens.
#ifndef OUTRIDER_TRAIN_BATCHES_BLOCK_ANCHORS_H_
#define OUTRIDER_TRAIN_BATCHES_BLOCK_ANCHORS_H_

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cstdint>

namespace outrider::train {

struct AnchorChoice {
  int n_blocks = 32;  // of a sequence, at most
  int n_drafted = 0;  // tokens that a block predicts
  // Take only blocks whose tokens all count. Evaluations set this, since cut blocks would lower
  // their figures.
  bool whole = false;
};

// The blocks of a batch. If a sequence has fewer possible anchors than n_blocks, its remaining
// blocks have weights of zero.
struct AnchoredBlocks {
  // tokens (n_sequences, length) int64, weights (n_sequences, length). Anchors are drawn without
  // replacement. A place can be an anchor if it has a state before it and a token that counts after
  // it. Draws from `generator`, or from torch's default generator if there is none.
  AnchoredBlocks(const torch::Tensor& tokens, const torch::Tensor& weights,
                 const AnchorChoice& choice, c10::optional<at::Generator> generator = {});

  torch::Tensor anchors;  // (n_sequences, n_blocks) int64: places
  // (n_sequences, n_blocks, n_drafted + 1) int64: the anchor and the tokens after it.
  torch::Tensor tokens;
  // (n_sequences, n_blocks, n_drafted): the weight of each token after the anchor; zero from the
  // first token on that does not count.
  torch::Tensor weights;
  // (n_sequences * n_blocks * n_drafted) int64: indices into the flattened places of the batch. At
  // these places the target predicts the drafted tokens.
  torch::Tensor judges;
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_BATCHES_BLOCK_ANCHORS_H_
