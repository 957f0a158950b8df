// SPDX-License-Identifier: Apache-2.0
#include "model/heads/markov_head.h"

#include <algorithm>
#include <utility>

#include "base/elementary.h"
#include "model/pass/pass_builder.h"

namespace outrider {
namespace {

using Form = BlockHeadConfig::Markov::Form;

double sigmoid(double x) { return 1 / (1 + portable_exp(-x)); }
double hyperbolic_tangent(double x) { return 1 - 2 / (portable_exp(2 * x) + 1); }

}  // namespace

MarkovHead::MarkovHead(Parts parts, const CpuPass::Machine& machine)
    : parts_(std::move(parts)), embedding_(static_cast<std::size_t>(parts_.form.rank)) {
  if (!parts_.joint.empty()) {
    PassBuilder pass(parts_.joint.matrix.n_columns());
    joined_ = pass.buffer(parts_.joint.matrix.k());
    raw_ = pass.stream();
    const op::Normalise::Part read = {joined_, nullptr};
    pass.linear_into(raw_, pass.join({&read, 1}), parts_.joint);
    joint_.emplace(pass.take(), machine);
  }
  PassBuilder pass(rank());
  latent_ = pass.stream();
  const op::Normalise::Part read = {latent_, nullptr};
  pass.spread_logits(pass.join({&read, 1}), parts_.after.matrix, parts_.vocabulary,
                     parts_.vocabulary_size);
  after_.emplace(pass.take(), machine);
}

std::int64_t MarkovHead::n_weights() const {
  const auto of = [](const Linear& linear) {
    return std::int64_t{linear.matrix.k()} * linear.matrix.n_columns();
  };
  return of(parts_.joint) + of(parts_.after);
}

void MarkovHead::embed(TokenId token, std::span<float> to) const {
  decode_rows(*parts_.before, token, 1, to);
}

void MarkovHead::read(std::span<const Node> nodes, std::span<float> states,
                      std::span<float> latents) {
  const auto width = static_cast<std::size_t>(rank());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    embed(nodes[i].token, latents.subspan(i * width, width));
  }
  if (parts_.form.form == Form::vanilla || nodes.empty()) return;
  const bool recurs = parts_.form.form == Form::recurrent;
  joint_->prepare_rows(static_cast<int>(nodes.size()));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    const std::span<const float> e = latents.subspan(i * width, width);
    float* to = joint_->row(joined_, static_cast<std::int64_t>(i));
    if (recurs) {
      to = node.state.empty() ? std::fill_n(to, width, 0.0F)
                              : std::copy(node.state.begin(), node.state.end(), to);
      to = std::copy(e.begin(), e.end(), to);
      std::copy(node.slot_output.begin(), node.slot_output.end(), to);
    } else {
      to = std::copy(node.slot_output.begin(), node.slot_output.end(), to);
      std::copy(e.begin(), e.end(), to);
    }
  }
  joint_->run({});
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const float* const raw = joint_->row(raw_, static_cast<std::int64_t>(i));
    const std::span<float> latent = latents.subspan(i * width, width);
    for (std::size_t j = 0; j < width; ++j) {
      const double gate = sigmoid(raw[j]);
      if (!recurs) {
        latent[j] = static_cast<float>(gate * latent[j]);
        continue;
      }
      const double before = nodes[i].state.empty() ? 0 : nodes[i].state[j];
      states[i * width + j] =
          static_cast<float>(gate * before + (1 - gate) * hyperbolic_tangent(raw[width + j]));
      latent[j] = static_cast<float>(hyperbolic_tangent(raw[2 * width + j]));
    }
  }
}

void MarkovHead::give(std::span<const float> latents, ForwardOutput& output) {
  const auto n_rows = static_cast<int>(latents.size()) / rank();
  after_->prepare_rows(n_rows);
  float* const logits = output.logits.start_pass(n_rows, parts_.vocabulary_size);
  output.feature_width = 0;
  if (n_rows == 0) return;
  std::copy(latents.begin(), latents.end(), after_->row(latent_, 0));
  after_->run({.logits = logits});
}

double MarkovHead::confidence(const Node& node) {
  double sum = parts_.confidence_bias;
  const std::size_t dim = node.slot_output.size();
  for (std::size_t i = 0; i < dim; ++i) sum += double{parts_.confidence[i]} * node.slot_output[i];
  if (parts_.form.confidence_reads_token) {
    embed(node.token, embedding_);
    for (std::size_t i = 0; i < embedding_.size(); ++i) {
      sum += double{parts_.confidence[dim + i]} * embedding_[i];
    }
  }
  return sigmoid(sum);
}

}  // namespace outrider
