// SPDX-License-Identifier: Apache-2.0
#include "model/families/experts/routed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/load/expert_loader.h"
#include "model/load/read_size.h"

namespace outrider {
namespace {

// Far above any model's; no width overflows within it.
constexpr int kMaxDense = 1 << 12;
constexpr int kMaxSharedWidth = 1 << 24;

void read_groups(const ConfigSource& source, const ModelConfig& decoder, const RoutedForm& form,
                 ExpertGroups& groups) {
  constexpr ConfigKey kGroups = {"n_group", "expert_group_count"};
  constexpr ConfigKey kUsed = {"topk_group", "expert_group_used_count"};
  const bool is_gguf = source.is_gguf();
  groups.n = source.whole(kGroups).value_or(is_gguf ? 1 : form.n_groups);
  if (is_gguf && groups.n == 0) groups.n = 1;  // 0 means no groups
  require_range(source, kGroups, groups.n, 1, decoder.n_experts);
  groups.n_used = source.whole(kUsed).value_or(is_gguf ? 1 : form.n_groups_used);
  if (groups.n == 1) groups.n_used = 1;
  const int least = groups.worth == ExpertGroups::Worth::best_two ? 2 : 1;
  const bool divides = decoder.n_experts % groups.n == 0;
  const int size = decoder.n_experts / groups.n;
  if (!divides || (groups.n > 1 && size < least)) {
    source.fail(
        kGroups,
        fmt::format("a divisor of {} experts, with {} in a group", decoder.n_experts, least),
        fmt::format("{}", groups.n));
  }
  require_range(source, kUsed, groups.n_used, 1, groups.n);
  if (groups.n_used * size < decoder.n_experts_used) {
    source.fail(kUsed, fmt::format("groups of at least {} experts", decoder.n_experts_used),
                fmt::format("{} of {}", groups.n_used, size));
  }
}

void use_sigmoids(bool sums_to_one, RoutedConfig& routed) {
  routed.weights = sums_to_one ? ExpertWeights::sigmoid_used : ExpertWeights::sigmoid;
  routed.groups.worth = ExpertGroups::Worth::best_two;
}

void read_routing_of_gguf(const ConfigSource& source, const RoutedForm& form,
                          RoutedConfig& routed) {
  constexpr ConfigKey kScores = {nullptr, "expert_gating_func"};
  constexpr ConfigKey kSumToOne = {nullptr, "expert_weights_norm"};
  constexpr int kSoftmax = 1;
  constexpr int kSigmoid = 2;
  // A choice bias occurs only with sigmoids. GLM-4.7-Flash's first files have one and do not say
  // how scores are computed.
  const std::string bias = fmt::format("blk.{}.exp_probs_b.bias", routed.n_dense);
  const bool by_sigmoid = form.by_sigmoid_in_gguf || source.has_bias("", bias.c_str());
  const int scores = source.whole(kScores).value_or(by_sigmoid ? kSigmoid : kSoftmax);
  if (scores != kSoftmax && scores != kSigmoid) {
    source.fail(kScores, "1 (softmax) or 2 (sigmoid)", fmt::format("{}", scores));
  }
  const bool sums_to_one = source.flag(kSumToOne).value_or(false);
  if (scores == kSigmoid) return use_sigmoids(sums_to_one, routed);
  if (sums_to_one) {
    source.fail(kSumToOne,
                "false where scores are a softmax (expert_gating_func is 1 or not there)", "true");
  }
}

void read_text(const ConfigSource& source, const char* name, const char* right) {
  const ConfigKey key = {name, nullptr};
  if (const std::string said = source.text(key).value_or(right); said != right) {
    source.fail(key, right, said);
  }
}

// Whether a row's experts come from its best groups only.
bool read_routing(const ConfigSource& source, const RoutedForm& form, RoutedConfig& routed) {
  constexpr ConfigKey kMethod = {"topk_method", nullptr};
  constexpr ConfigKey kSumToOne = {"norm_topk_prob", nullptr};
  if (form.by_sigmoid) {
    read_text(source, "scoring_func", "sigmoid");
    read_text(source, "topk_method", "noaux_tc");
    use_sigmoids(source.flag(kSumToOne).value_or(true), routed);
    routed.has_choice_bias = true;
    return true;
  }
  read_text(source, "scoring_func", "softmax");
  require_off(source, "norm_topk_prob");
  const std::string method = source.text(kMethod).value_or("greedy");
  if (method == "group_limited_greedy") return true;
  if (method != "greedy") source.fail(kMethod, "greedy or group_limited_greedy", method);
  // Present there, but unused.
  (void)source.whole({"n_group", nullptr});
  (void)source.whole({"topk_group", nullptr});
  return false;
}

// From mlp_layer_types, if the file lists them, and the separate number, if present.
int read_n_dense(const ConfigSource& source, const RoutedForm& form, int n_layers) {
  constexpr ConfigKey kDense = {"first_k_dense_replace", "leading_dense_block_count"};
  constexpr ConfigKey kList = {"mlp_layer_types", nullptr};
  const std::optional<int> said = source.whole(kDense);
  const int n_dense = said.value_or(source.is_gguf() ? 0 : form.n_dense);
  require_range(source, kDense, n_dense, 0, kMaxDense);
  if (!form.has_layer_list) return n_dense;
  const auto list = source.texts(kList);
  if (!list) return n_dense;
  const int listed = static_cast<int>(
      std::find_if(list->begin(), list->end(), [](const auto& kind) { return kind != "dense"; }) -
      list->begin());
  std::vector<std::string> right(static_cast<std::size_t>(n_layers), "sparse");
  std::fill_n(right.begin(), std::min(said.value_or(listed), n_layers), "dense");
  if (*list != right) {
    source.fail(
        kList,
        said ? fmt::format("{} layers \"dense\" and then \"sparse\" up to {}", *said, n_layers)
             : fmt::format("\"dense\" and then \"sparse\" up to {} layers", n_layers),
        fmt::format("{} entries, {} \"dense\" first", list->size(), listed));
  }
  return listed;
}

// The width of all shared experts together.
int read_shared_dim(const ConfigSource& source, const RoutedForm& form, int expert_dim) {
  constexpr ConfigKey kShared = {"n_shared_experts", "expert_shared_count"};
  const ConfigKey width_key = {form.shared_width, "expert_shared_feed_forward_length"};
  const int n_shared = source.whole(kShared).value_or(source.is_gguf() ? 0 : form.n_shared);
  require_range(source, kShared, n_shared, 0, kMaxExperts);
  const std::optional<int> width = source.whole(width_key);
  const std::int64_t dim = width ? *width : std::int64_t{expert_dim} * n_shared;
  if (dim < 0 || dim > kMaxSharedWidth) {
    source.fail(width ? width_key : kShared,
                fmt::format("experts of together 0 to {} elements", kMaxSharedWidth),
                fmt::format("{}", dim));
  }
  return static_cast<int>(dim);
}

GatedMlp load_mlp(LayerLoader& from, const TensorName& gate, const TensorName& up,
                  const TensorName& down, int dim, int hidden) {
  GatedMlp mlp;
  mlp.gate = from.linear(gate, hidden, dim, Bias::never);
  mlp.up = from.linear(up, hidden, dim, Bias::never);
  mlp.down = from.linear(down, dim, hidden, Bias::never);
  return mlp;
}

Experts load_own_experts(LayerLoader& from, const ModelConfig& config, const RoutedConfig& routed) {
  constexpr TensorName kBias = {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"};
  Experts experts =
      load_experts(from, config, routed.weights,
                   {.block = "mlp.", .gate = "gate_proj", .up = "up_proj", .down = "down_proj"});
  experts.groups = routed.groups;
  experts.scale = routed.scale;
  // With a softmax the bias would be added to probabilities, which no published file does. There it
  // counts as an unused weight and is refused.
  const bool is_softmax = routed.weights == ExpertWeights::softmax;
  if (!is_softmax && (from.is_gguf() ? from.has(kBias, "") : routed.has_choice_bias)) {
    experts.choice_bias = from.plain_vector(kBias, config.n_experts);
  }
  return experts;
}

}  // namespace

void require_off(const ConfigSource& source, const char* name) {
  const ConfigKey key = {name, nullptr};
  if (source.flag(key).value_or(false)) source.fail(key, "false", "true");
}

RoutedConfig read_routed(const ConfigSource& source, const RoutedForm& form, ModelConfig& decoder) {
  constexpr ConfigKey kExperts = {"n_routed_experts", "expert_count"};
  constexpr ConfigKey kWidth = {"moe_intermediate_size", "expert_feed_forward_length"};
  constexpr ConfigKey kScale = {"routed_scaling_factor", "expert_weights_scale"};
  const bool is_gguf = source.is_gguf();
  RoutedConfig routed;
  read_experts_of(source, kExperts, kWidth, decoder);
  routed.n_dense = read_n_dense(source, form, decoder.n_layers);
  const double scale = source.real(kScale).value_or(is_gguf ? 1 : form.scale);
  if (!(scale >= 0 && scale <= 1e6)) source.fail(kScale, "0 to 1e6", fmt::format("{}", scale));
  routed.scale = is_gguf && scale == 0 ? 1 : static_cast<float>(scale);  // as in llama.cpp
  routed.shared_dim = read_shared_dim(source, form, decoder.expert_dim);
  bool has_groups = true;
  if (is_gguf) {
    read_routing_of_gguf(source, form, routed);
  } else {
    has_groups = read_routing(source, form, routed);
  }
  if (has_groups) read_groups(source, decoder, form, routed.groups);
  decoder.n_expert_layers = decoder.n_layers - std::min(routed.n_dense, decoder.n_layers);
  if (decoder.n_expert_layers == 0) {
    decoder.n_experts = decoder.n_experts_used = decoder.expert_dim = 0;
  }
  return routed;
}

void load_routed(LayerLoader& from, const ModelConfig& config, const RoutedConfig& routed,
                 int layer, DecoderLayer& loaded) {
  const int dim = config.dim;
  if (layer < routed.n_dense) {
    loaded.mlp = load_mlp(from, {"mlp.gate_proj", "ffn_gate"}, {"mlp.up_proj", "ffn_up"},
                          {"mlp.down_proj", "ffn_down"}, dim, config.hidden_dim);
    return;
  }
  loaded.experts = load_own_experts(from, config, routed);
  if (routed.shared_dim == 0) return;
  loaded.shared_expert.mlp =
      load_mlp(from, {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
               {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
               {"mlp.shared_experts.down_proj", "ffn_down_shexp"}, dim, routed.shared_dim);
}

void add_routed(PassBuilder& pass, Rows read, const DecoderLayer& layer) {
  if (layer.experts.empty()) return pass.add(pass.gated_mlp(read, layer.mlp));
  pass.add(pass.experts(read, layer.experts));
  if (!layer.shared_expert.empty()) pass.add_shared_expert(read, layer.shared_expert);
}

}  // namespace outrider
