// SPDX-License-Identifier: Apache-2.0
#include "model/families/recurrent/nemotron_h.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "model/config_section.h"
#include "model/families/llama.h"
#include "model/load/expert_loader.h"
#include "model/load/modules_behind.h"
#include "model/load/read_size.h"

namespace outrider {
namespace {

using Block = NemotronHConfig::Block;

// The names of a layer's kind in config.json: in a pattern of letters, or in transformers' list.
struct BlockName {
  char letter;
  std::string_view word;
  Block block;
};
constexpr BlockName kBlockNames[] = {{'M', "mamba", Block::mamba},
                                     {'*', "attention", Block::attention},
                                     {'-', "mlp", Block::mlp},
                                     {'E', "moe", Block::experts}};
// Far above any model's; ModelConfig's own bound.
constexpr int kMaxLayers = 1 << 12;

// Reads hybrid_override_pattern, or layers_block_type, which counts if a file has both, as in
// transformers.
std::vector<Block> read_blocks_of_directory(const ConfigSource& source) {
  constexpr ConfigKey kPattern = {"hybrid_override_pattern", nullptr};
  constexpr ConfigKey kList = {"layers_block_type", nullptr};
  constexpr ConfigKey kLayers = {"num_hidden_layers", nullptr};
  const auto find = [&](const ConfigKey& key, const std::string& said, const auto& fits) {
    const auto* const found = std::find_if(std::begin(kBlockNames), std::end(kBlockNames), fits);
    if (found == std::end(kBlockNames)) {
      source.fail(key, "of mamba (M), attention (*), mlp (-) and moe (E)", said);
    }
    return found->block;
  };
  const auto list = source.texts(kList);
  const auto pattern = source.text(kPattern);
  const ConfigKey& key = list ? kList : kPattern;
  if (!list && !pattern) source.fail(kPattern, "there", "no such key");
  std::vector<Block> blocks;
  if (list) {
    for (const std::string& word : *list) {
      blocks.push_back(find(key, word, [&](const BlockName& name) { return name.word == word; }));
    }
  } else {
    for (const char letter : *pattern) {
      blocks.push_back(find(key, std::string(1, letter),
                            [&](const BlockName& name) { return name.letter == letter; }));
    }
  }
  const int n_layers = static_cast<int>(blocks.size());
  require_range(source, key, n_layers, 1, kMaxLayers);
  if (const int said = source.whole(kLayers).value_or(n_layers); said != n_layers) {
    source.fail(kLayers, fmt::format("{}, the layers of {}", n_layers, key.hugging_face),
                fmt::format("{}", said));
  }
  return blocks;
}

// GGUF has two lists: key-value heads, nonzero for layers that attend, and widths, nonzero for
// layers with an MLP or experts. Sets both numbers of the config. A module after the layers is
// listed too, with both.
std::vector<Block> read_blocks_of_gguf(const ConfigSource& source, int n_modules, bool has_experts,
                                       ModelConfig& config) {
  constexpr ConfigKey kHeads = {nullptr, "attention.head_count_kv"};
  constexpr ConfigKey kWidths = {nullptr, "feed_forward_length"};
  const int n_listed = config.n_layers + n_modules;
  const auto list_of = [&](const ConfigKey& key) {
    auto list = source.of_layers(key, n_listed);
    if (!list) source.fail(key, "there", "no such key");
    return *std::move(list);
  };
  const std::vector<int> heads = list_of(kHeads);
  const std::vector<int> widths = list_of(kWidths);
  // The one number besides 0.
  const auto note = [&](const ConfigKey& key, int value, std::optional<int>& known) {
    if (value != known.value_or(value)) {
      source.fail(key, fmt::format("0 or {}, as the first", *known), fmt::format("{}", value));
    }
    known = value;
  };
  std::optional<int> n_kv_heads;
  std::optional<int> hidden_dim;
  std::vector<Block> blocks;
  for (int i = 0; i < config.n_layers; ++i) {
    const int n_heads = heads[static_cast<std::size_t>(i)];
    const int width = widths[static_cast<std::size_t>(i)];
    if (n_heads != 0 && width != 0) {
      source.fail(kWidths, fmt::format("0 in layer {}, which attends", i),
                  fmt::format("{}", width));
    }
    if (n_heads != 0) note(kHeads, n_heads, n_kv_heads);
    if (width != 0) note(kWidths, width, hidden_dim);
    blocks.push_back(n_heads != 0  ? Block::attention
                     : width == 0  ? Block::mamba
                     : has_experts ? Block::experts
                                   : Block::mlp);
  }
  config.n_kv_heads = n_kv_heads.value_or(config.n_heads);
  config.hidden_dim = hidden_dim.value_or(config.dim);
  return blocks;
}

constexpr ConfigKey kEpsilon = {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon"};

// Files also have the epsilon under names that transformers and llama.cpp do not read.
void require_one_epsilon(const ConfigSource& source) {
  constexpr ConfigKey kOthers[] = {{"rms_norm_eps", "attention.layer_norm_epsilon"},
                                   {"norm_eps", nullptr}};
  const double epsilon = source.required_real(kEpsilon);
  for (const ConfigKey& key : kOthers) {
    if (const double other = source.real(key).value_or(epsilon); other != epsilon) {
      source.fail(key, fmt::format("{}, as the other epsilon", epsilon), fmt::format("{}", other));
    }
  }
}

// The hub's first files have a head's width under the second name only.
ConfigKey head_dim_key(const ConfigSource& source) {
  constexpr ConfigKey kHead = {"head_dim", "attention.key_length"};
  constexpr ConfigKey kOther = {"attention_head_dim", nullptr};
  const std::optional<int> other = source.whole(kOther);
  const ConfigKey key = other && !source.whole(kHead) ? kOther : kHead;
  const int width = source.required_whole(key);
  if (other && *other != width) {
    source.fail(kOther, fmt::format("head_dim, {}", width), fmt::format("{}", *other));
  }
  return key;
}

// Keys without effect: about training, about other programs, and about RoPE, which no layer has.
void note_other_keys(const ConfigSource& source) {
  for (const char* name : {"expand", "chunk_size", "num_logits_to_keep", "time_step_rank"}) {
    (void)source.whole({name, nullptr});
  }
  for (const char* name : {"time_step_min", "time_step_max", "time_step_floor"}) {
    (void)source.real({name, nullptr});
  }
  for (const char* name : {"use_mamba_kernels", "rescale_prenorm_residual", "residual_in_fp32",
                           "moe_shared_expert_overlap"}) {
    (void)source.flag({name, nullptr});
  }
  (void)source.text({"mamba_ssm_cache_dtype", nullptr});
  (void)source.real({"rope_theta", "rope.freq_base"});
  (void)source.real({"partial_rotary_factor", nullptr});
  (void)source.whole({nullptr, "rope.dimension_count"});
  // About modules after the layers.
  (void)source.text({"mtp_hybrid_override_pattern", nullptr});
  (void)source.texts({"mtp_layers_block_type", nullptr});
}

// Defaults are transformers'.
DeltaShape read_shape(const ConfigSource& source) {
  constexpr ConfigKey kGroups = {"n_groups", "ssm.group_count"};
  constexpr ConfigKey kHeads = {"mamba_num_heads", "ssm.time_step_rank"};
  DeltaShape shape;
  shape.n_taps = read_size(source, {"conv_kernel", "ssm.conv_kernel"}, 4, 2, kMaxTaps);
  shape.n_key_heads = read_size(source, kGroups, 8, 1, kMaxMambaHeads);
  shape.n_value_heads = read_size(source, kHeads, 128, 1, kMaxMambaHeads);
  shape.key_dim = read_size(source, {"ssm_state_size", "ssm.state_size"}, 128, 1, kMaxMambaDim);
  shape.value_dim = source.is_gguf()
                        ? read_mamba_head_dim(source, shape.n_value_heads)
                        : read_size(source, {"mamba_head_dim", nullptr}, 64, 1, kMaxMambaDim);
  require_whole_groups(source, kHeads, kGroups, shape);
  return shape;
}

MambaForm read_mamba(const ConfigSource& source, const std::vector<Block>& blocks) {
  constexpr ConfigKey kFilterBias = {"use_conv_bias", nullptr};
  constexpr ConfigKey kActivation = {"mamba_hidden_act", nullptr};
  if (const std::string said = source.text(kActivation).value_or("silu"); said != "silu") {
    source.fail(kActivation, "silu", said);
  }
  const auto first = std::find(blocks.begin(), blocks.end(), Block::mamba) - blocks.begin();
  const std::string filter = fmt::format("blk.{}.ssm_conv1d.bias", first);
  MambaForm form;
  form.shape = read_shape(source);
  form.filter_bias = source.is_gguf() ? source.has_bias(nullptr, filter.c_str())
                                      : source.flag(kFilterBias).value_or(true);
  form.product_bias = source.has_bias("use_bias", fmt::format("blk.{}.ssm_in.bias", first).c_str());
  form.norms_groups = true;
  read_step_limits(source, form);
  return form;
}

void read_mixture(const ConfigSource& source, NemotronHConfig& config) {
  constexpr ConfigKey kShared = {"n_shared_experts", "expert_shared_count"};
  constexpr ConfigKey kSharedWidth = {"moe_shared_expert_intermediate_size",
                                      "expert_shared_feed_forward_length"};
  constexpr ConfigKey kLatent = {"moe_latent_size", "moe_latent_size"};
  constexpr ConfigKey kScores = {nullptr, "expert_gating_func"};
  constexpr ConfigKey kDense = {"first_k_dense_replace", "leading_dense_block_count"};
  ModelConfig& decoder = config.decoder;
  config.routed = read_routed(
      source, {.n_dense = 0, .by_sigmoid_in_gguf = true, .shared_width = kSharedWidth.hugging_face},
      decoder);
  if (config.routed.n_dense != 0) {  // the list gives the layers' kinds
    source.fail(kDense, "0", fmt::format("{}", config.routed.n_dense));
  }
  if (config.routed.weights == ExpertWeights::softmax) source.fail(kScores, "2 (sigmoid)", "1");
  // One shared expert of the given width: in transformers the number has no effect.
  if (const int n_shared = source.whole(kShared).value_or(1); n_shared != 1) {
    source.fail(kShared, "1", fmt::format("{}", n_shared));
  }
  if (const int width = source.required_whole(kSharedWidth); width < 1) {
    source.fail(kSharedWidth, "at least 1", fmt::format("{}", width));
  }
  const std::optional<int> latent_dim = source.whole(kLatent);
  config.latent_dim = latent_dim.value_or(0);
  // GGUF files may write 0 for none; for transformers 0 would be a width.
  const int least = latent_dim && !source.is_gguf() ? 1 : 0;
  require_range(source, kLatent, config.latent_dim, least, decoder.dim - 1);
  decoder.n_expert_layers =
      static_cast<int>(std::count(config.blocks.begin(), config.blocks.end(), Block::experts));
}

// Directories have keys about experts even if no layer has any.
void note_keys_of_experts(const ConfigSource& source) {
  for (const char* name : {"n_routed_experts", "n_shared_experts", "moe_intermediate_size",
                           "moe_shared_expert_intermediate_size", "moe_latent_size",
                           "num_experts_per_tok", "n_group", "topk_group"}) {
    (void)source.whole({name, nullptr});
  }
  (void)source.real({"routed_scaling_factor", nullptr});
  (void)source.flag({"norm_topk_prob", nullptr});
}

NemotronHConfig read_nemotron_h(const ConfigSource& source) {
  constexpr ConfigKey kExperts = {nullptr, "expert_count"};
  constexpr ConfigKey kKvHeads = {"num_key_value_heads", nullptr};
  DecoderKeys keys;
  keys.n_kv_heads = kKvHeads;
  keys.head_dim = head_dim_key(source);
  keys.hidden_dim.gguf = nullptr;
  keys.norm_epsilon = kEpsilon;
  NemotronHConfig config;
  const bool is_gguf = source.is_gguf();
  if (!is_gguf) {
    config.blocks = read_blocks_of_directory(source);
    // transformers has a default of its own there.
    if (!source.has(kKvHeads)) source.fail(kKvHeads, "there", "no such key");
  }
  config.decoder = read_decoder_config(source, {.architecture = "nemotron_h",
                                                .keys = keys,
                                                .activation_key = "mlp_hidden_act",
                                                .activation = "relu2",
                                                .n_layers = static_cast<int>(config.blocks.size()),
                                                .widening = is_gguf ? 1 : 0,
                                                .has_rope = false});
  require_one_epsilon(source);
  if (is_gguf) {
    const int n_modules = read_n_modules_behind(source);
    const bool has_experts = source.whole(kExperts).value_or(0) != 0;
    config.decoder.n_layers -= n_modules;
    config.blocks = read_blocks_of_gguf(source, n_modules, has_experts, config.decoder);
  }
  const auto count = [&](Block block) {
    return std::count(config.blocks.begin(), config.blocks.end(), block);
  };
  const auto first_mlp =
      std::find(config.blocks.begin(), config.blocks.end(), Block::mlp) - config.blocks.begin();
  config.decoder.mlp_bias =
      source.has_bias("mlp_bias", fmt::format("blk.{}.ffn_up.bias", first_mlp).c_str());
  if (!is_gguf) require_off(source, "attention_bias");  // transformers reads no biases
  config.mamba = read_mamba(source, config.blocks);
  if (count(Block::experts) > 0) {
    read_mixture(source, config);
  } else if (!is_gguf) {
    note_keys_of_experts(source);
  }
  note_other_keys(source);
  // Other programs read it; here it would be ignored.
  constexpr ConfigKey kOtherBias = {"mamba_conv_bias", nullptr};
  if (source.has(kOtherBias)) source.fail(kOtherBias, "use_conv_bias in its place", "both or none");
  if (count(Block::mamba) + count(Block::attention) == 0) {
    source.fail({"hybrid_override_pattern", "attention.head_count_kv"},
                "a layer of Mamba-2 or attention", "none");
  }
  check_config(config.decoder, kReadConfig, source.description());
  return config;
}

}  // namespace

NemotronH::NemotronH(const ConfigSource& source) : NemotronH(read_nemotron_h(source)) {}

RecurrentLayers NemotronH::recurrent_layers() const {
  return {.n = static_cast<int>(std::count(own_.blocks.begin(), own_.blocks.end(), Block::mamba)),
          .shape = shape_of_mamba(own_.mamba.shape)};
}

// Names in the hub's files, in those of transformers 5, and in its memory.
DecoderNames NemotronH::names() const {
  return {.embedding = {"backbone.embeddings", "token_embd"},
          .final_norm = {"backbone.norm_f", "output_norm"},
          .layers = {"backbone.layers.", "blk."},
          .optional_prefix = "backbone.",
          .other_prefix = "model.",
          .other_embedding = "backbone.embedding"};
}

Attention NemotronH::load_attention(LayerLoader& from) const {
  const int dim = config().dim;
  const int n_queries = config().n_heads * config().head_dim;
  const int n_keys = config().n_kv_heads * config().head_dim;
  // The converter to GGUF permutes query and key rows as for Llama, even without RoPE.
  const int interleaved = from.is_gguf() ? config().head_dim : 0;
  Attention loaded = attention_of(config());
  loaded.rope = kNoRope;
  loaded.query = from.linear({"mixer.q_proj", "attn_q"}, n_queries, dim, Bias::never, interleaved);
  loaded.key = from.linear({"mixer.k_proj", "attn_k"}, n_keys, dim, Bias::never, interleaved);
  loaded.value = from.linear({"mixer.v_proj", "attn_v"}, n_keys, dim, Bias::never);
  loaded.output = from.linear({"mixer.o_proj", "attn_output"}, dim, n_queries, Bias::never);
  return loaded;
}

Experts NemotronH::load_experts(LayerLoader& from) const {
  const int dim = config().dim;
  const int latent_dim = own_.latent_dim;
  Experts loaded = load_plain_experts(from, config(), own_.routed.weights, "mixer.",
                                      latent_dim > 0 ? latent_dim : dim);
  loaded.activation = Activation::relu_squared;
  loaded.groups = own_.routed.groups;
  loaded.scale = own_.routed.scale;
  loaded.choice_bias = from.plain_vector({"mixer.gate.e_score_correction_bias", "exp_probs_b.bias"},
                                         config().n_experts);
  if (latent_dim == 0) return loaded;
  const Bias bias = config().mlp_bias ? Bias::always : Bias::never;
  loaded.narrow = from.linear({"mixer.fc1_latent_proj", "ffn_latent_down"}, latent_dim, dim, bias);
  loaded.widen = from.linear({"mixer.fc2_latent_proj", "ffn_latent_up"}, dim, latent_dim, bias);
  return loaded;
}

DecoderLayer NemotronH::load_layer(LayerLoader& from, int layer) const {
  const int dim = config().dim;
  const Bias bias = config().mlp_bias ? Bias::always : Bias::never;
  const auto load_mlp = [&](const TensorName& up, const TensorName& down, int hidden_dim) {
    return PlainMlp{.activation = Activation::relu_squared,
                    .up = from.linear(up, hidden_dim, dim, bias),
                    .down = from.linear(down, dim, hidden_dim, bias)};
  };
  DecoderLayer loaded;
  loaded.before_attention = load_norm(from, {"norm", "attn_norm"}, dim);
  switch (own_.blocks[static_cast<std::size_t>(layer)]) {
    case Block::mamba:
      loaded.mamba = load_mamba(from, own_.mamba, "mixer.", dim, config().norm_epsilon);
      break;
    case Block::attention:
      loaded.attention = load_attention(from);
      break;
    case Block::mlp:
      loaded.plain_mlp = load_mlp({"mixer.up_proj", "ffn_up"}, {"mixer.down_proj", "ffn_down"},
                                  config().hidden_dim);
      break;
    case Block::experts:
      loaded.experts = load_experts(from);
      loaded.plain_mlp =
          load_mlp({"mixer.shared_experts.up_proj", "ffn_up_shexp"},
                   {"mixer.shared_experts.down_proj", "ffn_down_shexp"}, own_.routed.shared_dim);
      break;
  }
  return loaded;
}

void NemotronH::compose(PassBuilder& pass, const DecoderLayer& layer) const {
  const Rows read = pass.norm(pass.stream(), layer.before_attention);
  if (!layer.mamba.output.empty()) return pass.add(pass.mamba(read, layer.mamba));
  if (!layer.attention.output.empty()) return pass.add(pass.attention(read, layer.attention));
  if (!layer.experts.empty()) pass.add(pass.experts(read, layer.experts));
  pass.add(pass.plain_mlp(read, layer.plain_mlp));
}

}  // namespace outrider
