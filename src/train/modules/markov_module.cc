// SPDX-License-Identifier: Apache-2.0
#include "train/modules/markov_module.h"

#include <vector>

#include "train/modules/llama_module.h"

namespace outrider::train {
namespace {

using torch::Tensor;
using Form = BlockHeadConfig::Markov::Form;

// A component of parameter names: "markov_head".
class GroupImpl : public torch::nn::Module {};
TORCH_MODULE(Group);

}  // namespace

MarkovModuleImpl::MarkovModuleImpl(Form form, int rank, int dim, int vocabulary_size,
                                   Products products)
    : form_(form), products_(products) {
  auto markov = register_module("markov_head", Group());
  before_ = markov->register_module("markov_w1", torch::nn::Embedding(vocabulary_size, rank));
  after_ = markov->register_module(
      "markov_w2", torch::nn::Linear(torch::nn::LinearOptions(rank, vocabulary_size).bias(false)));
  if (form == Form::gated) {
    joint_ = markov->register_module("gate_proj", torch::nn::Linear(dim + rank, rank));
  } else if (form == Form::recurrent) {
    joint_ = markov->register_module("joint_proj", torch::nn::Linear(2 * rank + dim, 3 * rank));
  }
  auto confidence = register_module("confidence_head", Group());
  confidence_ = confidence->register_module("proj", torch::nn::Linear(dim + rank, 1));
}

// The output part of each slot's state, from (g, c, o) as in markov_head.h.
Tensor MarkovModuleImpl::recurrent(const Tensor& given, const Tensor& embedded) {
  const std::int64_t rank = embedded.size(-1);
  Tensor state = torch::zeros({embedded.size(0), rank}, embedded.options());
  std::vector<Tensor> latents;
  for (std::int64_t slot = 0; slot < embedded.size(1); ++slot) {
    const Tensor read = torch::cat({state, embedded.select(1, slot), given.select(1, slot)}, -1);
    const Tensor joint = project(read, joint_, products_);
    const Tensor gate = torch::sigmoid(joint.narrow(-1, 0, rank));
    state = gate * state + (1 - gate) * torch::tanh(joint.narrow(-1, rank, rank));
    latents.push_back(torch::tanh(joint.narrow(-1, 2 * rank, rank)));
  }
  return torch::stack(latents, 1);
}

MarkovModuleImpl::Given MarkovModuleImpl::forward(const Tensor& given, const Tensor& before) {
  const Tensor embedded = before_->forward(before);
  const Tensor both = torch::cat({given, embedded}, -1);
  Tensor latent = embedded;
  if (form_ == Form::gated) {
    latent = torch::sigmoid(project(both, joint_, products_)) * embedded;
  } else if (form_ == Form::recurrent) {
    latent = recurrent(given, embedded);
  }
  return {project(latent, after_, products_),
          project(both, confidence_, Products::full).squeeze(-1)};
}

}  // namespace outrider::train
