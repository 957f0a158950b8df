// Which blocks of a batch a head is trained on, and what they are to say.
#ifndef OUTRIDER_TRAIN_BLOCK_ANCHORS_H_
#define OUTRIDER_TRAIN_BLOCK_ANCHORS_H_

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cstdint>

namespace outrider::train {

struct AnchorChoice {
  int n_blocks = 32;  // of a sequence, at most
  int n_drafted = 0;  // tokens that a block is to say
  // Only blocks that stand whole within what counts: for figures, which ends would make smaller.
  bool whole = false;
};

// Blocks of a batch. Where a sequence has fewer places for an anchor than blocks are asked for, the
// rest of its blocks have weights of zero.
struct AnchoredBlocks {
  // tokens (n_sequences, length) int64, weights (n_sequences, length). Anchors are drawn without
  // replacement among the places that have a state before them and a token that counts behind them,
  // by `generator` or, without one, torch's own.
  AnchoredBlocks(const torch::Tensor& tokens, const torch::Tensor& weights,
                 const AnchorChoice& choice, c10::optional<at::Generator> generator = {});

  torch::Tensor anchors;  // (n_sequences, n_blocks) int64: places
  // (n_sequences, n_blocks, n_drafted + 1) int64: the anchor and the tokens behind it.
  torch::Tensor tokens;
  // (n_sequences, n_blocks, n_drafted): how much saying each of the tokens behind it counts; zero
  // from the first one on that does not.
  torch::Tensor weights;
  // (n_sequences * n_blocks * n_drafted) int64: the rows of the batch's places, flattened, at which
  // the target gives the law of these tokens.
  torch::Tensor judges;
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_BLOCK_ANCHORS_H_
