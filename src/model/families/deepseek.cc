#include "model/families/deepseek.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "base/elementary.h"
#include "model/load/expert_loader.h"
#include "model/load/modules_behind.h"
#include "model/load/read_size.h"

namespace outrider {
namespace {

// Of the norms of latents and of what queries are made of, whatever rms_norm_eps says: that of the
// models' own code, and of transformers.
constexpr float kLatentEpsilon = 1e-6F;
// Far above any model's, within which no width overflows.
constexpr int kMostWidth = 1 << 12;
constexpr int kMostQueryRank = 1 << 20;  // as dim's
constexpr int kMostSharedWidth = 1 << 24;

constexpr ConfigKey kRopeDim = {"qk_rope_head_dim", "rope.dimension_count"};
constexpr ConfigKey kLatentDim = {"kv_lora_rank", "attention.kv_lora_rank"};

void require_off(const ConfigSource& source, const char* name) {
  const ConfigKey key = {name, nullptr};
  if (source.flag(key).value_or(false)) source.fail(key, "false", "true");
}

// Widths of heads. Files of GGUF call the key's width a head's, and say the heads' own beside; old
// ones, which join the two halves of what a latent becomes, the heads' alone.
void read_heads_of_gguf(const ConfigSource& source, DeepSeekConfig& config, int rope_dim) {
  constexpr ConfigKey kKey = {nullptr, "attention.key_length"};
  constexpr ConfigKey kValue = {nullptr, "attention.value_length"};
  constexpr ConfigKey kHead = {nullptr, "attention.key_length_mla"};
  constexpr ConfigKey kHeadValue = {nullptr, "attention.value_length_mla"};
  const bool is_new = source.has(kHead);
  const int latent_dim = config.decoder.latent_dim;
  const auto require = [&](const ConfigKey& key, int right) {
    const int said = source.required_whole(key);
    if (said != right) source.fail(key, fmt::format("{}", right), fmt::format("{}", said));
  };
  if (is_new) {
    require(kKey, latent_dim + rope_dim);
    require(kValue, latent_dim);
  }
  const ConfigKey& head = is_new ? kHead : kKey;
  const int head_dim = source.required_whole(head);
  require_range(source, head, head_dim, rope_dim + 1, kMostWidth);
  config.plain_dim = head_dim - rope_dim;
  const ConfigKey& value = is_new ? kHeadValue : kValue;
  config.value_dim = source.required_whole(value);
  require_range(source, value, config.value_dim, 1, kMostWidth);
}

void read_heads(const ConfigSource& source, DeepSeekConfig& config) {
  constexpr ConfigKey kPlain = {"qk_nope_head_dim", nullptr};
  constexpr ConfigKey kValue = {"v_head_dim", nullptr};
  constexpr ConfigKey kQueryRank = {"q_lora_rank", "attention.q_lora_rank"};
  ModelConfig& decoder = config.decoder;
  const int rope_dim = decoder.head_dim;
  decoder.latent_dim = source.required_whole(kLatentDim);
  require_range(source, kLatentDim, decoder.latent_dim, 1, kMostWidth - rope_dim);
  config.query_rank = source.whole(kQueryRank).value_or(0);
  require_range(source, kQueryRank, config.query_rank, 0, kMostQueryRank);
  if (source.is_gguf()) {
    read_heads_of_gguf(source, config, rope_dim);
  } else {
    config.plain_dim = source.required_whole(kPlain);
    require_range(source, kPlain, config.plain_dim, 1, kMostWidth - rope_dim);
    config.value_dim = source.required_whole(kValue);
    require_range(source, kValue, config.value_dim, 1, kMostWidth);
    // transformers writes them beside.
    (void)source.whole({"head_dim", nullptr});
    constexpr ConfigKey kWhole = {"qk_head_dim", nullptr};
    const int whole = source.whole(kWhole).value_or(config.plain_dim + rope_dim);
    if (whole != config.plain_dim + rope_dim) {
      source.fail(kWhole, fmt::format("{}", config.plain_dim + rope_dim), fmt::format("{}", whole));
    }
  }
  decoder.head_dim = config.plain_dim + rope_dim;
  decoder.rotary_dim = rope_dim;
  decoder.n_kv_heads = 1;
}

// Of YaRN, the square of 1 + w log(factor) / 10 with w = mscale_all_dim, as the models' own code
// has it for V2, too (transformers leaves it out there). The factor of what turns is the quotient
// of two of these; GGUF stores w / 10, and nothing of the quotient: it is 1 in all published files.
float read_score_scale(const ConfigSource& source, ModelConfig& config) {
  constexpr ConfigKey kWeight = {nullptr, "rope.scaling.yarn_log_multiplier"};
  constexpr ConfigKey kFactor = {nullptr, "rope.scaling.attn_factor"};
  RopeConfig& rope = config.rope;
  double weight = rope.weight_of_all;
  if (source.is_gguf()) {
    weight = 10 * source.real(kWeight).value_or(0);
    if (const double factor = source.real(kFactor).value_or(1); factor != 1) {
      source.fail(kFactor, "1", fmt::format("{}", factor));
    }
  }
  if (!(weight >= 0 && weight <= 100)) {  // far beyond any there is
    source.fail(source.is_gguf() ? kWeight : ConfigKey{"mscale_all_dim", nullptr}, "0 to 100",
                fmt::format("{}", weight));
  }
  weight = double{static_cast<float>(weight)};  // GGUF's, times 10, is off by its last bits
  double factor = 1;
  if (rope.scaling == RopeConfig::Scaling::yarn) {
    if (!source.is_gguf()) rope.magnitude = static_cast<float>(rope.attention_factor);
    rope.attention_factor = 1;
    if (rope.factor > 1) factor = 0.1 * weight * portable_log(rope.factor) + 1;
  }
  return static_cast<float>(factor * factor / std::sqrt(static_cast<double>(config.head_dim)));
}

void read_groups(const ConfigSource& source, const ConfigKey& n, const ConfigKey& used,
                 int otherwise_n, int otherwise_used, DeepSeekConfig& config) {
  ExpertGroups& groups = config.groups;
  const ModelConfig& decoder = config.decoder;
  groups.n = std::max(source.whole(n).value_or(otherwise_n), 1);
  groups.n_used = source.whole(used).value_or(otherwise_used);
  if (groups.n == 1) groups.n_used = 1;
  const int least = groups.worth == ExpertGroups::Worth::best_two ? 2 : 1;
  const bool divides = decoder.n_experts % groups.n == 0;
  const int size = decoder.n_experts / groups.n;
  if (!divides || (groups.n > 1 && size < least)) {
    source.fail(
        n, fmt::format("a divisor of {} experts, with {} in a group", decoder.n_experts, least),
        fmt::format("{}", groups.n));
  }
  require_range(source, used, groups.n_used, 1, groups.n);
  if (groups.n_used * size < decoder.n_experts_used) {
    source.fail(used, fmt::format("groups of at least {} experts", decoder.n_experts_used),
                fmt::format("{} of {}", groups.n_used, size));
  }
}

void read_routing_of_gguf(const ConfigSource& source, DeepSeekConfig& config) {
  constexpr ConfigKey kScores = {nullptr, "expert_gating_func"};
  constexpr ConfigKey kSumToOne = {nullptr, "expert_weights_norm"};
  constexpr int kSoftmax = 1;  // where a file does not say, as those of V2
  constexpr int kSigmoid = 2;
  const int scores = source.whole(kScores).value_or(kSoftmax);
  if (scores != kSoftmax && scores != kSigmoid) {
    source.fail(kScores, "1 (softmax) or 2 (sigmoid)", fmt::format("{}", scores));
  }
  const bool sums_to_one = source.flag(kSumToOne).value_or(false);
  if (scores == kSigmoid) {
    config.weights = sums_to_one ? ExpertWeights::sigmoid_used : ExpertWeights::sigmoid;
    config.groups.worth = ExpertGroups::Worth::best_two;
  } else if (sums_to_one) {
    source.fail(kSumToOne,
                "false where scores are a softmax (expert_gating_func is 1 or not there)", "true");
  }
  constexpr ConfigKey kGroups = {nullptr, "expert_group_count"};
  read_groups(source, kGroups, {nullptr, "expert_group_used_count"}, 1, 1, config);
  // DeepSeek-V2 (160 experts) and V3 (256) have eight groups; V2-Lite and Moonlight (64) have none.
  constexpr int kLeastGrouped = 160;
  if (!source.has(kGroups) && config.decoder.n_experts >= kLeastGrouped) {
    config.decoder.warnings.push_back(fmt::format(
        "{}: no deepseek2.expert_group_count: experts are chosen among all {}, as llama.cpp does "
        "with such a file; the published models of this size choose groups first",
        source.description(), config.decoder.n_experts));
  }
}

void read_text(const ConfigSource& source, const char* name, const char* right) {
  const ConfigKey key = {name, nullptr};
  if (const std::string said = source.text(key).value_or(right); said != right) {
    source.fail(key, right, said);
  }
}

// Defaults are transformers'.
void read_routing(const ConfigSource& source, bool is_v3, DeepSeekConfig& config) {
  constexpr ConfigKey kGroups = {"n_group", nullptr};
  constexpr ConfigKey kGroupsUsed = {"topk_group", nullptr};
  constexpr ConfigKey kMethod = {"topk_method", nullptr};
  constexpr ConfigKey kSumToOne = {"norm_topk_prob", nullptr};
  if (is_v3) {
    read_text(source, "scoring_func", "sigmoid");
    read_text(source, "topk_method", "noaux_tc");
    config.weights = source.flag(kSumToOne).value_or(true) ? ExpertWeights::sigmoid_used
                                                           : ExpertWeights::sigmoid;
    config.groups.worth = ExpertGroups::Worth::best_two;
    config.has_choice_bias = true;
    return read_groups(source, kGroups, kGroupsUsed, 8, 4, config);
  }
  read_text(source, "scoring_func", "softmax");
  require_off(source, "norm_topk_prob");
  const std::string method = source.text(kMethod).value_or("greedy");
  if (method == "group_limited_greedy") {
    return read_groups(source, kGroups, kGroupsUsed, 1, 1, config);
  }
  if (method != "greedy") source.fail(kMethod, "greedy or group_limited_greedy", method);
  // Named there, and not in use.
  (void)source.whole(kGroups);
  (void)source.whole(kGroupsUsed);
}

void read_own_experts(const ConfigSource& source, bool is_v3, DeepSeekConfig& config) {
  constexpr ConfigKey kExperts = {"n_routed_experts", "expert_count"};
  constexpr ConfigKey kWidth = {"moe_intermediate_size", "expert_feed_forward_length"};
  constexpr ConfigKey kDense = {"first_k_dense_replace", "leading_dense_block_count"};
  constexpr ConfigKey kShared = {"n_shared_experts", "expert_shared_count"};
  constexpr ConfigKey kSharedWidth = {nullptr, "expert_shared_feed_forward_length"};
  constexpr ConfigKey kScale = {"routed_scaling_factor", "expert_weights_scale"};
  constexpr ConfigKey kEvery = {"moe_layer_freq", nullptr};
  const bool is_gguf = source.is_gguf();
  ModelConfig& decoder = config.decoder;
  read_experts_of(source, kExperts, kWidth, decoder);
  config.n_dense = source.whole(kDense).value_or(is_v3 ? 3 : 0);
  require_range(source, kDense, config.n_dense, 0, kMostWidth);
  if (const int every = source.whole(kEvery).value_or(1); every != 1) {
    source.fail(kEvery, "1", fmt::format("{}", every));
  }
  const double scale = source.real(kScale).value_or(is_v3 ? 2.5 : 1);
  if (!(scale >= 0 && scale <= 1e6)) source.fail(kScale, "0 to 1e6", fmt::format("{}", scale));
  config.expert_scale = is_gguf && scale == 0 ? 1 : static_cast<float>(scale);  // as llama.cpp
  const int n_shared = source.whole(kShared).value_or(is_gguf ? 0 : (is_v3 ? 1 : 2));
  require_range(source, kShared, n_shared, 0, kMostExperts);
  const std::optional<int> shared_width = source.whole(kSharedWidth);
  const std::int64_t shared_dim =
      shared_width ? *shared_width : std::int64_t{decoder.expert_dim} * n_shared;
  if (shared_dim < 0 || shared_dim > kMostSharedWidth) {
    source.fail(shared_width ? kSharedWidth : kShared,
                fmt::format("experts of together 0 to {} elements", kMostSharedWidth),
                fmt::format("{}", shared_dim));
  }
  config.shared_dim = static_cast<int>(shared_dim);
  is_gguf ? read_routing_of_gguf(source, config) : read_routing(source, is_v3, config);
  decoder.n_expert_layers = decoder.n_layers - std::min(config.n_dense, decoder.n_layers);
  if (decoder.n_expert_layers == 0) {
    decoder.n_experts = decoder.n_experts_used = decoder.expert_dim = 0;
  }
}

// What files say of training and of where experts run.
void read_other_keys(const ConfigSource& source, bool is_v3) {
  require_off(source, "attention_bias");
  if (!is_v3) require_off(source, "mlp_bias");
  constexpr ConfigKey kPairs = {"rope_interleave", nullptr};
  if (is_v3 && !source.flag(kPairs).value_or(true)) source.fail(kPairs, "true", "false");
  (void)source.real({"aux_loss_alpha", nullptr});
  (void)source.flag({"seq_aux", nullptr});
  (void)source.whole({"ep_size", nullptr});
}

DeepSeekConfig read_deepseek(const ConfigSource& source, bool is_v3) {
  DecoderKeys keys;
  keys.head_dim = kRopeDim;
  keys.value_dim = {nullptr, nullptr};
  (void)source.required_whole(kRopeDim);
  DeepSeekConfig config;
  config.decoder = read_decoder_config(source, {.architecture = "deepseek", .keys = keys});
  config.decoder.n_layers -= read_n_modules_behind(source);
  const int n_kv_heads = config.decoder.n_kv_heads;
  if (n_kv_heads != config.decoder.n_heads && !(source.is_gguf() && n_kv_heads == 1)) {
    source.fail(keys.n_kv_heads, fmt::format("all heads, {}", config.decoder.n_heads),
                fmt::format("{}", n_kv_heads));
  }
  read_heads(source, config);
  config.score_scale = read_score_scale(source, config.decoder);
  read_own_experts(source, is_v3, config);
  if (!source.is_gguf()) read_other_keys(source, is_v3);
  return config;
}

Norm latent_norm(const LayerLoader& from, const TensorName& name, int width) {
  return {.weight = from.vector(name, width), .epsilon = kLatentEpsilon};
}

GatedMlp load_mlp(LayerLoader& from, const TensorName& gate, const TensorName& up,
                  const TensorName& down, int dim, int hidden) {
  GatedMlp mlp;
  mlp.gate = from.linear(gate, hidden, dim, Bias::never);
  mlp.up = from.linear(up, hidden, dim, Bias::never);
  mlp.down = from.linear(down, dim, hidden, Bias::never);
  return mlp;
}

}  // namespace

LatentAttention DeepSeek::load_attention(LayerLoader& from) const {
  const int dim = config().dim;
  const int n_heads = config().n_heads;
  LatentAttention loaded;
  loaded.plain_dim = own_.plain_dim;
  loaded.rope_dim = config().rotary_dim;
  loaded.latent_dim = config().latent_dim;
  loaded.value_dim = own_.value_dim;
  Attention& attention = loaded.attention;
  attention.n_heads = n_heads;
  attention.n_kv_heads = 1;
  attention.head_dim = loaded.latent_dim + loaded.rope_dim;
  attention.scale = own_.score_scale;
  attention.values_in_keys = loaded.latent_dim;
  const int n_queries = n_heads * config().head_dim;
  if (own_.query_rank > 0) {
    loaded.query_down =
        from.linear({"self_attn.q_a_proj", "attn_q_a"}, own_.query_rank, dim, Bias::never);
    loaded.query_norm =
        latent_norm(from, {"self_attn.q_a_layernorm", "attn_q_a_norm"}, own_.query_rank);
    attention.query =
        from.linear({"self_attn.q_b_proj", "attn_q_b"}, n_queries, own_.query_rank, Bias::never);
  } else {
    attention.query = from.linear({"self_attn.q_proj", "attn_q"}, n_queries, dim, Bias::never);
  }
  loaded.down = from.linear({"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"}, attention.head_dim,
                            dim, Bias::never);
  loaded.latent_norm =
      latent_norm(from, {"self_attn.kv_a_layernorm", "attn_kv_a_norm"}, loaded.latent_dim);
  attention.output = from.linear({"self_attn.o_proj", "attn_output"}, dim,
                                 n_heads * loaded.value_dim, Bias::never);
  constexpr TensorName kKeyUp = {nullptr, "attn_k_b"};
  constexpr TensorName kValueUp = {nullptr, "attn_v_b"};
  constexpr TensorName kBoth = {"self_attn.kv_b_proj", "attn_kv_b"};
  if (from.is_gguf() && from.has(kKeyUp)) {
    loaded.key_up = from.stacked_heads(kKeyUp, n_heads, loaded.latent_dim, loaded.plain_dim);
    loaded.value_up = from.stacked_heads(kValueUp, n_heads, loaded.value_dim, loaded.latent_dim);
    return loaded;
  }
  HeadRows rows = {.n = n_heads,
                   .n_stored = loaded.plain_dim + loaded.value_dim,
                   .first = 0,
                   .n_rows = loaded.plain_dim,
                   .transposed = true};
  loaded.key_up = from.parts_of_heads(kBoth, loaded.latent_dim, rows);
  rows.first = loaded.plain_dim;
  rows.n_rows = loaded.value_dim;
  rows.transposed = false;
  loaded.value_up = from.parts_of_heads(kBoth, loaded.latent_dim, rows);
  return loaded;
}

Experts DeepSeek::load_own_experts(LayerLoader& from) const {
  constexpr TensorName kBias = {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"};
  Experts experts =
      load_experts(from, config(), own_.weights,
                   {.block = "mlp.", .gate = "gate_proj", .up = "up_proj", .down = "down_proj"});
  experts.groups = own_.groups;
  experts.scale = own_.expert_scale;
  // Beside a softmax it would be added to probabilities, which no published file does: there it is
  // a weight that nobody reads, which is refused.
  const bool is_softmax = own_.weights == ExpertWeights::softmax;
  if (!is_softmax && (from.is_gguf() ? from.has(kBias, "") : own_.has_choice_bias)) {
    experts.choice_bias = from.plain_vector(kBias, config().n_experts);
  }
  return experts;
}

DecoderLayer DeepSeek::load_layer(LayerLoader& from, int layer) const {
  const int dim = config().dim;
  DecoderLayer loaded;
  loaded.before_attention = load_norm(from, {"input_layernorm", "attn_norm"}, dim);
  loaded.latent = load_attention(from);
  loaded.before_mlp = load_norm(from, {"post_attention_layernorm", "ffn_norm"}, dim);
  if (layer < own_.n_dense) {
    loaded.mlp = load_mlp(from, {"mlp.gate_proj", "ffn_gate"}, {"mlp.up_proj", "ffn_up"},
                          {"mlp.down_proj", "ffn_down"}, dim, config().hidden_dim);
    return loaded;
  }
  loaded.experts = load_own_experts(from);
  if (own_.shared_dim > 0) {
    loaded.shared_expert.mlp =
        load_mlp(from, {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
                 {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
                 {"mlp.shared_experts.down_proj", "ffn_down_shexp"}, dim, own_.shared_dim);
  }
  return loaded;
}

void DeepSeek::compose(PassBuilder& pass, const DecoderLayer& layer) const {
  Rows read = pass.norm(pass.stream(), layer.before_attention);
  pass.add(pass.latent_attention(read, layer.latent));
  read = pass.norm(pass.stream(), layer.before_mlp);
  if (layer.experts.empty()) return pass.add(pass.gated_mlp(read, layer.mlp));
  pass.add(pass.experts(read, layer.experts));
  if (!layer.shared_expert.empty()) pass.add_shared_expert(read, layer.shared_expert);
}

DeepSeekV2::DeepSeekV2(const ConfigSource& source) : DeepSeek(read_deepseek(source, false)) {}

DeepSeekV3::DeepSeekV3(const ConfigSource& source) : DeepSeek(read_deepseek(source, true)) {}

}  // namespace outrider
