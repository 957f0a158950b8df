// SPDX-License-Identifier: Apache-2.0
// Multi-token prediction modules (DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv 2412.19437,
// section 2.2): a chain of decoder layers after a model. Each module reads the previous module's
// output and one further token, and predicts the token after that one.
#ifndef OUTRIDER_TRAIN_MODULES_MTP_MODULE_H_
#define OUTRIDER_TRAIN_MODULES_MTP_MODULE_H_

#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

#include "model/config.h"
#include "train/losses/losses.h"
#include "train/losses/target_tensors.h"
#include "train/modules/llama_module.h"
#include "train/modules/products.h"
#include "train/output/model_directory.h"

namespace outrider::train {

class MtpModulesImpl : public torch::nn::Module {
 public:
  // Layers of the config's shape on the training device, with random weights drawn from torch's
  // default generator. Parameters are named "{k}.enorm.weight", "{k}.self_attn.q_proj.weight", ...
  // with k from 0.
  MtpModulesImpl(const ModelConfig& config, Products products, int n_modules);

  // The output of module k, counted from 0 (eq. 21 and 22). before (n_sequences, n_rows, dim): the
  // previous module's output; for k = 0 the input of the model's output matrix. embeddings: of the
  // tokens k + 1 places later. The joined input has the embedding first, as in the published
  // weights.
  torch::Tensor forward(int k, const torch::Tensor& before, const torch::Tensor& embeddings);
  // The input of the model's output matrix, from module k's output: each module has a norm for it.
  torch::Tensor head_input(int k, const torch::Tensor& given);

  int n_modules() const { return static_cast<int>(modules_.size()); }

  // The parameters under their names in a checkpoint: modules follow the model's layers as
  // "model.layers.{n_layers + k}". DeepSeek's files repeat the embedding and the output matrix
  // there; here only the model has them.
  std::vector<NamedTensor> named_tensors() const;

 private:
  struct Depth {
    DecoderLayer block{nullptr};
    RmsNorm embedding_norm{nullptr};
    RmsNorm hidden_norm{nullptr};
    torch::nn::Linear join{nullptr};
    RmsNorm head_norm{nullptr};
  };
  ModelConfig config_;
  Products products_;
  std::vector<Depth> modules_;
};
TORCH_MODULE(MtpModules);

// The model to which the modules are attached.
struct MtpTrunk {
  torch::Tensor features;  // (n_sequences, n_rows, dim): output matrix inputs of places 0, 1, ...
  std::function<torch::Tensor(const torch::Tensor& tokens)> embed;
  std::function<torch::Tensor(const torch::Tensor& features)> logits;
};

// Module k's prediction at place i is the token at i + k + 2. `loss` is its mean cross-entropy.
// `overlap` and `agreement` compare it with the model that has read the text up to that token.
struct MtpParts {
  torch::Tensor loss, overlap, agreement, weight;
};
// tokens and weights (n_sequences, length) as in a batch; model_logits (n_sequences, n_rows or
// more, vocabulary_size): the model's logits at the same places.
std::vector<MtpParts> judge_mtp(MtpModules& modules, const MtpTrunk& trunk,
                                const torch::Tensor& tokens, const torch::Tensor& weights,
                                const torch::Tensor& model_logits);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_MODULES_MTP_MODULE_H_
