// SPDX-License-Identifier: Apache-2.0
#include "model/load/expert_loader.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace outrider {
namespace {

void require_count(const ConfigSource& source, const ConfigKey& key, int n_experts) {
  if (n_experts >= 1 && n_experts <= kMaxExperts) return;
  source.fail(key, fmt::format("1 to {}", kMaxExperts), fmt::format("{}", n_experts));
}

// Both of transformers' names: num_experts in files of the hub, num_local_experts in its own.
int read_n_experts(const ConfigSource& source) {
  constexpr ConfigKey kOld = {"num_experts", nullptr};
  constexpr ConfigKey kNew = {"num_local_experts", "expert_count"};
  const std::optional<int> old = source.whole(kOld);
  const int n_experts = old ? source.whole(kNew).value_or(*old) : source.required_whole(kNew);
  if (old && *old != n_experts) {
    source.fail(kOld, fmt::format("num_local_experts, {}", n_experts), fmt::format("{}", *old));
  }
  require_count(source, old ? kOld : kNew, n_experts);
  return n_experts;
}

// Reads what follows the number of experts: how many of them a row uses, and their width.
void read_sizes(const ConfigSource& source, const ConfigKey& width, ModelConfig& config) {
  constexpr ConfigKey kUsed = {"num_experts_per_tok", "expert_used_count"};
  constexpr int kMaxWidth = 1 << 22;  // as for hidden_dim
  config.n_experts_used = source.required_whole(kUsed);
  config.expert_dim = source.whole(width).value_or(config.hidden_dim);
  config.n_expert_layers = config.n_layers;
  if (config.n_experts_used < 1 || config.n_experts_used > config.n_experts) {
    source.fail(kUsed, fmt::format("1 to {}, the number of experts", config.n_experts),
                fmt::format("{}", config.n_experts_used));
  }
  if (config.expert_dim < 1 || config.expert_dim > kMaxWidth) {
    source.fail(width, fmt::format("1 to {}", kMaxWidth), fmt::format("{}", config.expert_dim));
  }
}

// Each matrix under its own name, "experts.N.w1" or "ffn_gate.N".
std::vector<Matrix> load_each(LayerLoader& from, const ExpertNames& names, const char* hugging_face,
                              const char* gguf, int n, int n_columns, int k) {
  std::vector<Matrix> matrices;
  for (int i = 0; i < n; ++i) {
    const std::string in_directory = fmt::format("{}experts.{}.{}", names.block, i, hugging_face);
    const std::string in_file = fmt::format("{}.{}", gguf, i);
    matrices.push_back(from.expert({in_directory.c_str(), in_file.c_str()}, n_columns, k));
  }
  return matrices;
}

// The experts without their matrices.
Experts load_router(LayerLoader& from, const ModelConfig& config, ExpertWeights weights,
                    const char* name) {
  Experts experts;
  experts.weights = weights;
  experts.n_used = config.n_experts_used;
  experts.router = from.f32_matrix({name, "ffn_gate_inp"}, config.n_experts, config.dim);
  return experts;
}

}  // namespace

void read_experts(const ConfigSource& source, const ConfigKey& width, ModelConfig& config) {
  constexpr ConfigKey kScores = {nullptr, "expert_gating_func"};
  constexpr int kSoftmax = 1;
  config.n_experts = read_n_experts(source);
  read_sizes(source, width, config);
  if (const int scores = source.whole(kScores).value_or(kSoftmax); scores != kSoftmax) {
    source.fail(kScores, fmt::format("{} (softmax)", kSoftmax), fmt::format("{}", scores));
  }
}

void read_experts_of(const ConfigSource& source, const ConfigKey& n_experts, const ConfigKey& width,
                     ModelConfig& config) {
  config.n_experts = source.required_whole(n_experts);
  require_count(source, n_experts, config.n_experts);
  read_sizes(source, width, config);
}

ExpertWeights read_expert_weights(const ConfigSource& source, bool otherwise) {
  constexpr ConfigKey kSumToOne = {"norm_topk_prob", "expert_weights_norm"};
  return source.flag(kSumToOne).value_or(otherwise) ? ExpertWeights::softmax_used
                                                    : ExpertWeights::softmax;
}

Experts load_stacked_experts(LayerLoader& from, const ModelConfig& config, ExpertWeights weights,
                             const StackedExpertNames& names) {
  const int n = config.n_experts;
  const int dim = config.dim;
  const int hidden_dim = config.expert_dim;
  const TensorName joined = {names.gate_and_up, "ffn_gate_up_exps"};
  const char* const ending = from.is_gguf() ? ".weight" : "";
  Experts experts = load_router(from, config, weights, names.router);
  if (from.is_gguf() && !from.has(joined)) {
    experts.gate = from.stacked({nullptr, "ffn_gate_exps"}, ending, n, hidden_dim, dim);
    experts.up = from.stacked({nullptr, "ffn_up_exps"}, ending, n, hidden_dim, dim);
  } else {
    const auto half = [&](int first) {
      return from.stacked(joined, ending, n, 2 * hidden_dim, dim,
                          {.first = first, .n = hidden_dim});
    };
    experts.gate = half(0);
    experts.up = half(hidden_dim);
  }
  experts.down = from.stacked({names.down, "ffn_down_exps"}, ending, n, dim, hidden_dim);
  return experts;
}

Experts load_experts(LayerLoader& from, const ModelConfig& config, ExpertWeights weights,
                     const ExpertNames& names) {
  // transformers' names in memory, for every family, and so in files of this form.
  constexpr StackedExpertNames kStacked = {.router = "mlp.gate",
                                           .gate_and_up = "mlp.experts.gate_up_proj",
                                           .down = "mlp.experts.down_proj"};
  const TensorName stored = {kStacked.gate_and_up, "ffn_gate_exps"};
  if (from.has(stored, from.is_gguf() ? ".weight" : "")) {
    return load_stacked_experts(from, config, weights, kStacked);
  }
  const int n = config.n_experts;
  const int dim = config.dim;
  const int hidden_dim = config.expert_dim;
  Experts experts = load_router(from, config, weights, fmt::format("{}gate", names.block).c_str());
  experts.gate = load_each(from, names, names.gate, "ffn_gate", n, hidden_dim, dim);
  experts.up = load_each(from, names, names.up, "ffn_up", n, hidden_dim, dim);
  experts.down = load_each(from, names, names.down, "ffn_down", n, dim, hidden_dim);
  return experts;
}

Experts load_plain_experts(LayerLoader& from, const ModelConfig& config, ExpertWeights weights,
                           const char* block, int width) {
  const int n = config.n_experts;
  Experts experts = load_router(from, config, weights, fmt::format("{}gate", block).c_str());
  const auto load = [&](const char* name, const char* gguf, int n_columns, int k) {
    const std::string all = fmt::format("{}experts.{}", block, name);
    const TensorName stacked = {all.c_str(), gguf};
    const char* const ending = from.is_gguf() ? ".weight" : "";
    if (from.is_gguf() || from.has(stacked, ending)) {
      return from.stacked(stacked, ending, n, n_columns, k);
    }
    const ExpertNames names = {.block = block, .gate = nullptr, .up = nullptr, .down = nullptr};
    return load_each(from, names, name, gguf, n, n_columns, k);
  };
  experts.up = load("up_proj", "ffn_up_exps", config.expert_dim, width);
  experts.down = load("down_proj", "ffn_down_exps", width, config.expert_dim);
  return experts;
}

bool is_of_expert(std::string_view name) {
  for (const std::string_view block :
       {".experts.", ".block_sparse_moe.input_linear.", ".block_sparse_moe.output_linear."}) {
    if (name.find(block) != name.npos) return true;
  }
  if (name.ends_with("_exps.weight") || name.ends_with("_exps.bias")) return true;
  for (const std::string_view part : {".ffn_gate.", ".ffn_up.", ".ffn_down."}) {
    const std::size_t at = name.find(part);
    // followed by the expert's number, not "weight".
    if (at != name.npos && name.substr(at + part.size()) != "weight") return true;
  }
  return false;
}

}  // namespace outrider
