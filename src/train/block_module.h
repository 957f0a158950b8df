// The layers of a head that drafts a block, for training: the forward pass of
// model/heads/block_head.h with gradients, over many blocks of a text at a time. Submodules carry
// the names that such heads have in files.
#ifndef OUTRIDER_TRAIN_BLOCK_MODULE_H_
#define OUTRIDER_TRAIN_BLOCK_MODULE_H_

#include <torch/torch.h>

#include <vector>

#include "model/config.h"
#include "train/fused_steps.h"
#include "train/llama_module.h"
#include "train/products.h"

namespace outrider::train {

// Where blocks stand in the texts of a batch.
struct BlockPlaces {
  // anchors (n_sequences, n_blocks) int64: the position of each block's first slot. Texts have
  // n_tokens states each, slots as many positions from the anchor on as a block has slots.
  BlockPlaces(const ModelConfig& config, const torch::Tensor& anchors, int n_tokens, int n_slots,
              const torch::TensorOptions& like);

  Rotation of_states;  // (n_tokens, head_dim / 2)
  Rotation of_slots;   // (n_sequences * n_blocks * n_slots, head_dim / 2)
  // (n_sequences, n_blocks, n_tokens) boolean: the states that a block does not see. The target
  // runs the anchor only after the draft, so that there is no state of it yet, nor of later tokens.
  torch::Tensor unseen;
};

// A decoder layer with norms of its queries and keys, as Qwen 3 has them. A slot attends to the
// states in front of its block and to every slot of its block.
class BlockLayerImpl : public torch::nn::Module {
 public:
  BlockLayerImpl(const ModelConfig& config, Products products);

  // slots (n_sequences, n_blocks, n_slots, dim), states (n_sequences, n_tokens, dim) -> as slots.
  // Of the states keys and values are made as they are, without the layer's input norm.
  torch::Tensor forward(const torch::Tensor& slots, const torch::Tensor& states,
                        const BlockPlaces& places);

 private:
  torch::Tensor attend(const torch::Tensor& slots, const torch::Tensor& states,
                       const BlockPlaces& places);
  // x (n, n_rows, n_heads * head_dim) -> (n, n_heads, n_rows, head_dim), normed and turned.
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
  // config: of the layers; dim is the target's. n_features: the target's hidden states that are
  // read. The parameters are f32, on the processor, and empty of sense until initialise().
  BlockModuleImpl(const ModelConfig& config, int n_features, Products products);

  // features (n_sequences, n_tokens, n_features * dim) -> states (n_sequences, n_tokens, dim)
  torch::Tensor read(const torch::Tensor& features);
  // slots (n_sequences, n_blocks, n_slots, dim), the embeddings of anchors and masks -> what the
  // slots give, normed, of the same shape.
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

#endif  // OUTRIDER_TRAIN_BLOCK_MODULE_H_
