// SPDX-License-Identifier: Apache-2.0
#include "model/families/llama.h"

#include <cmath>

namespace outrider {

float default_attention_scale(const ModelConfig& config) {
  const double of_rope = config.rope.attention_factor * config.rope.attention_factor;
  return static_cast<float>(of_rope / std::sqrt(static_cast<double>(config.head_dim)));
}

Attention attention_of(const ModelConfig& config) {
  Attention attention;
  attention.n_heads = config.n_heads;
  attention.n_kv_heads = config.n_kv_heads;
  attention.head_dim = config.head_dim;
  attention.scale = default_attention_scale(config);
  return attention;
}

DecoderLayer load_llama_layer(LayerLoader& from, const ModelConfig& config,
                              const LlamaLayerForm& form) {
  const int dim = config.dim;
  const int width = form.attention_width > 0 ? form.attention_width : dim;
  const int n_queries = config.n_heads * config.head_dim;
  const int n_keys = config.n_kv_heads * config.head_dim;
  const int interleaved = form.interleaved ? config.head_dim : 0;
  const Bias attention_bias = config.attention_bias ? Bias::always : Bias::never;
  const Bias output_bias = config.attention_bias ? Bias::if_stored : Bias::never;
  const Bias mlp_bias = config.mlp_bias ? Bias::always : Bias::never;
  const auto norm = [&](const TensorName& name) {
    return Norm{.weight = from.vector(name, dim), .epsilon = config.norm_epsilon};
  };

  DecoderLayer layer;
  if (form.attention_norm) layer.before_attention = norm({"input_layernorm", "attn_norm"});
  Attention& attention = layer.attention;
  attention = attention_of(config);
  attention.query =
      from.linear({"self_attn.q_proj", "attn_q"}, n_queries, width, attention_bias, interleaved);
  attention.key =
      from.linear({"self_attn.k_proj", "attn_k"}, n_keys, width, attention_bias, interleaved);
  attention.value = from.linear({"self_attn.v_proj", "attn_v"}, n_keys, width, attention_bias);
  attention.output = from.linear({"self_attn.o_proj", "attn_output"}, dim, n_queries, output_bias);
  if (form.mlp_norm) layer.before_mlp = norm({"post_attention_layernorm", "ffn_norm"});
  if (!form.mlp) return layer;
  layer.mlp.gate = from.linear({"mlp.gate_proj", "ffn_gate"}, config.hidden_dim, dim, mlp_bias);
  layer.mlp.up = from.linear({"mlp.up_proj", "ffn_up"}, config.hidden_dim, dim, mlp_bias);
  layer.mlp.down = from.linear({"mlp.down_proj", "ffn_down"}, dim, config.hidden_dim, mlp_bias);
  return layer;
}

void compose_pre_norm(PassBuilder& pass, const DecoderLayer& layer) {
  pass.add(pass.attention(pass.norm(pass.stream(), layer.before_attention), layer.attention));
  const Rows read = pass.norm(pass.stream(), layer.before_mlp);
  pass.add(layer.experts.empty() ? pass.gated_mlp(read, layer.mlp)
                                 : pass.experts(read, layer.experts));
}

void compose_post_norm(PassBuilder& pass, const DecoderLayer& layer) {
  Rows h = pass.attention(pass.norm(pass.stream(), layer.before_attention), layer.attention);
  pass.add(pass.norm(h, layer.after_attention));
  h = pass.gated_mlp(pass.norm(pass.stream(), layer.before_mlp), layer.mlp);
  pass.add(pass.norm(h, layer.after_mlp));
}

namespace {

ModelConfig read_llama(const ConfigSource& source) {
  ModelConfig config = read_decoder_config(source, {.architecture = "llama"});
  config.attention_bias = source.has_bias("attention_bias", "blk.0.attn_q.bias");
  config.mlp_bias = source.has_bias("mlp_bias", "blk.0.ffn_gate.bias");
  return config;
}

}  // namespace

Llama::Llama(const ConfigSource& source) : Family(read_llama(source)) {}

DecoderLayer Llama::load_layer(LayerLoader& from, int) const {
  // The converter to GGUF permutes query and key rows of this family.
  return load_llama_layer(from, config(), {.interleaved = from.is_gguf()});
}

}  // namespace outrider
