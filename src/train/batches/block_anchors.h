// SPDX-License-Identifier: Apache-2.0
// Chooses the blocks of a batch that a head is trained on, and the tokens that they predict.
// A place is a position in a sequence, 0 to length - 1. A token counts if its weight is above 0.
#ifndef OUTRIDER_TRAIN_BATCHES_BLOCK_ANCHORS_H_
#define OUTRIDER_TRAIN_BATCHES_BLOCK_ANCHORS_H_

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cstdint>

namespace outrider::train {

struct AnchorChoice {
  int n_blocks = 32;  // of a sequence, at most
  int n_drafted = 0;  // tokens that a block predicts, at least 1
  // Only blocks whose drafted tokens all count. Evaluations set this: shorter blocks would lower
  // their figures.
  bool whole = false;
};

// The blocks of a batch. If a sequence has fewer possible anchors than n_blocks, its remaining
// blocks have weights of zero, and their other numbers mean nothing. All shapes below say n_blocks
// for the smaller of AnchorChoice::n_blocks and length.
struct AnchoredBlocks {
  // tokens (n_sequences, length) int64, weights (n_sequences, length). Anchors are drawn without
  // replacement. A place can be an anchor if it is not the first, so that the target has a state
  // before it, and if the token after it counts. Draws on the processor, from `generator` or, if
  // there is none, from torch's default generator. Inputs are not checked.
  AnchoredBlocks(const torch::Tensor& tokens, const torch::Tensor& weights,
                 const AnchorChoice& choice, c10::optional<at::Generator> generator = {});

  torch::Tensor anchors;  // (n_sequences, n_blocks) int64: places
  // (n_sequences, n_blocks, n_drafted + 1) int64: the anchor and the tokens after it. The last
  // token of the sequence is repeated after its end, with weights of zero.
  torch::Tensor tokens;
  // (n_sequences, n_blocks, n_drafted): the weight of each token after the anchor; zero from the
  // first token on that does not count.
  torch::Tensor weights;
  // (n_sequences * n_blocks * n_drafted) int64: indices into the batch's places, flattened from
  // (n_sequences, length). At the place before a drafted token the target predicts that token.
  torch::Tensor judges;
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_BATCHES_BLOCK_ANCHORS_H_
