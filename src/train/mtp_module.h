// Multi-token prediction modules (DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv 2412.19437,
// section 2.2): a chain of decoder layers behind a model, each of which reads what the one before
// gave and one token more, and predicts the token after that.
#ifndef OUTRIDER_TRAIN_MTP_MODULE_H_
#define OUTRIDER_TRAIN_MTP_MODULE_H_

#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

#include "model/config.h"
#include "train/llama_module.h"
#include "train/losses.h"
#include "train/model_directory.h"
#include "train/products.h"
#include "train/target_tensors.h"

namespace outrider::train {

class MtpModulesImpl : public torch::nn::Module {
 public:
  // Layers of the config's shape on the training device, random weights drawn from torch's
  // generator. Parameters are named "{k}.enorm.weight", "{k}.self_attn.q_proj.weight", ... with k
  // from 0.
  MtpModulesImpl(const ModelConfig& config, Products products, int n_modules);

  // What module k, counted from 0, makes of what the one before gave (n_sequences, n_rows, dim; for
  // k = 0 what the model's head reads) and the embeddings of the tokens k + 1 places on: eq. 21 and
  // 22. The two halves of the joined input stand as in the published weights, embedding first.
  torch::Tensor forward(int k, const torch::Tensor& before, const torch::Tensor& embeddings);
  // What the model's head reads to predict from that: it has a norm for each module.
  torch::Tensor head_input(int k, const torch::Tensor& given);

  int n_modules() const { return static_cast<int>(modules_.size()); }

  // The parameters under the names they have in a checkpoint: modules follow the model's layers as
  // "model.layers.{n_layers + k}". The embedding and the head, which DeepSeek's own files repeat
  // there, are the model's and stand with it alone.
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

// The model that the modules stand behind.
struct MtpTrunk {
  torch::Tensor features;  // (n_sequences, n_rows, dim): what its head reads, at places 0, 1, ...
  std::function<torch::Tensor(const torch::Tensor& tokens)> embed;
  std::function<torch::Tensor(const torch::Tensor& features)> logits;
};

// Module k's prediction at place i is of the token at i + k + 2; `loss` is the mean of its
// cross-entropy.
// overlap and agreement compare it with the model that has read the text up to that token.
struct MtpParts {
  torch::Tensor loss, overlap, agreement, weight;
};
// tokens and weights (n_sequences, length) as in a batch; model_logits (n_sequences, n_rows or
// more, vocabulary_size): the model's own at the same places.
std::vector<MtpParts> judge_mtp(MtpModules& modules, const MtpTrunk& trunk,
                                const torch::Tensor& tokens, const torch::Tensor& weights,
                                const torch::Tensor& model_logits);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_MTP_MODULE_H_
