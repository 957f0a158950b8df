// SPDX-License-Identifier: Apache-2.0
// The layers of a head that drafts a block, for training: the forward pass of
// model/heads/block_head.h with gradients, over many blocks of a text at once. Submodules have the
// names used in the files of such heads.
#ifndef OUTRIDER_TRAIN_MODULES_BLOCK_MODULE_H_
#define OUTRIDER_TRAIN_MODULES_BLOCK_MODULE_H_

#include <torch/torch.h>

#include <vector>

#include "model/config.h"
#include "train/fused/fused_steps.h"
#include "train/modules/llama_module.h"
#include "train/modules/products.h"

namespace outrider::train {

// The positions of blocks in the texts of a batch.
struct BlockPlaces {
  // anchors (n_sequences, n_blocks) int64: the position of each block's first slot. Each text has
  // n_tokens states. A block has n_slots slots at consecutive positions from its anchor on.
  BlockPlaces(const ModelConfig& config, const torch::Tensor& anchors, int n_tokens, int n_slots,
              const torch::TensorOptions& like);

  Rotation of_states;  // (n_tokens, head_dim / 2)
  Rotation of_slots;   // (n_sequences * n_blocks * n_slots, head_dim / 2)
  // (n_sequences, n_blocks, n_tokens) boolean: true for the states that a block does not see. The
  // target runs the anchor only after the draft, so the states of the anchor and of later tokens do
  // not exist yet.
  torch::Tensor unseen;
};

// A decoder layer with norms of its queries and keys, as in Qwen 3. A slot attends to the states
// before its block and to every slot of its block.
class BlockLayerImpl : public torch::nn::Module {
 public:
  BlockLayerImpl(const ModelConfig& config, Products products);

  // slots (n_sequences, n_blocks, n_slots, dim), states (n_sequences, n_tokens, dim) -> the shape
  // of slots. Keys and values of the states are computed without the layer's input norm.
  torch::Tensor forward(const torch::Tensor& slots, const torch::Tensor& states,
                        const BlockPlaces& places);

 private:
  torch::Tensor attend(const torch::Tensor& slots, const torch::Tensor& states,
                       const BlockPlaces& places);
  // x (n, n_rows, n_heads * head_dim) -> (n, n_heads, n_rows, head_dim), normed and rotated.
  torch::Tensor placed(const torch::Tensor& x, RmsNorm& norm, int n_heads, const Rotation& rotation,
                       double scale);

  ModelConfig config_;
  Products products_;
  torch::nn::Linear query_{nullptr}, key_{nullptr}, value_{nullptr}, output_{nullptr};
  torch::nn::Linear gate_{nullptr}, up_{nullptr}, down_{nullptr};
  RmsNorm query_norm_{nullptr}, key_norm_{nullptr};
  RmsNorm input_norm_{nullptr}, output_norm_{nullptr};
};
TORCH_MODULE(BlockLayer);

class BlockModuleImpl : public torch::nn::Module {
 public:
  // config: of the layers; dim is the target's. n_features: how many of the target's hidden states
  // are read. The parameters are f32, on the processor, and have arbitrary values until
  // initialise().
  BlockModuleImpl(const ModelConfig& config, int n_features, Products products);

  // features (n_sequences, n_tokens, n_features * dim) -> states (n_sequences, n_tokens, dim)
  torch::Tensor read(const torch::Tensor& features);
  // slots (n_sequences, n_blocks, n_slots, dim): the embeddings of anchors and masks. Returns the
  // slots' normed outputs, of the same shape.
  torch::Tensor forward(const torch::Tensor& slots, const torch::Tensor& states,
                        const BlockPlaces& places);

  torch::ScalarType type() const { return fuse_->weight.scalar_type(); }

 private:
  Products products_;
  torch::nn::Linear fuse_{nullptr};
  RmsNorm state_norm_{nullptr};
  std::vector<BlockLayer> layers_;
  RmsNorm norm_{nullptr};
};
TORCH_MODULE(BlockModule);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_MODULES_BLOCK_MODULE_H_
