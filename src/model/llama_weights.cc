#include "model/llama_weights.h"

#include <fmt/format.h>

#include <utility>

namespace outrider {
namespace {

// What the two schemes call the same tensors.
struct Names {
  const char* embedding;
  const char* final_norm;
  const char* head;
  const char* layer;  // {} is its number; the others follow it
  const char* attention_norm;
  const char* query;
  const char* key;
  const char* value;
  const char* output;
  const char* mlp_norm;
  const char* gate;
  const char* up;
  const char* down;
};

constexpr Names kHuggingFaceNames = {
    .embedding = "model.embed_tokens",
    .final_norm = "model.norm",
    .head = "lm_head",
    .layer = "model.layers.{}.",
    .attention_norm = "input_layernorm",
    .query = "self_attn.q_proj",
    .key = "self_attn.k_proj",
    .value = "self_attn.v_proj",
    .output = "self_attn.o_proj",
    .mlp_norm = "post_attention_layernorm",
    .gate = "mlp.gate_proj",
    .up = "mlp.up_proj",
    .down = "mlp.down_proj",
};

constexpr Names kGgufNames = {
    .embedding = "token_embd",
    .final_norm = "output_norm",
    .head = "output",
    .layer = "blk.{}.",
    .attention_norm = "attn_norm",
    .query = "attn_q",
    .key = "attn_k",
    .value = "attn_v",
    .output = "attn_output",
    .mlp_norm = "ffn_norm",
    .gate = "ffn_gate",
    .up = "ffn_up",
    .down = "ffn_down",
};

const Names& names_of(const WeightLoader& loader) {
  return loader.options().names == NamingScheme::gguf ? kGgufNames : kHuggingFaceNames;
}

std::string weight_of(const std::string& name) { return name + ".weight"; }

}  // namespace

LlamaLayer load_layer(WeightLoader& loader, const ModelConfig& config, const std::string& prefix,
                      const LayerForm& form) {
  const Names& names = names_of(loader);
  const int dim = config.dim;
  const int width = form.attention_width > 0 ? form.attention_width : dim;
  const int queries = config.n_heads * config.head_dim;
  const int keys = config.n_kv_heads * config.head_dim;
  // Rows that RoPE rotates are interleaved in GGUF.
  const int rotated = loader.options().names == NamingScheme::gguf ? config.head_dim : 0;
  const Bias attention_bias = config.attention_bias ? Bias::always : Bias::never;
  const Bias mlp_bias = config.mlp_bias ? Bias::always : Bias::never;

  LlamaLayer layer;
  if (form.attention_norm) {
    layer.attention_norm = loader.vector(weight_of(prefix + names.attention_norm), dim);
  }
  layer.query = loader.linear(prefix + names.query, queries, width, attention_bias, rotated);
  layer.key = loader.linear(prefix + names.key, keys, width, attention_bias, rotated);
  layer.value = loader.linear(prefix + names.value, keys, width, attention_bias);
  layer.output = loader.linear(prefix + names.output, dim, queries,
                               config.attention_bias ? Bias::if_stored : Bias::never);
  layer.mlp_norm = loader.vector(weight_of(prefix + names.mlp_norm), dim);
  layer.gate = loader.linear(prefix + names.gate, config.hidden_dim, dim, mlp_bias);
  layer.up = loader.linear(prefix + names.up, config.hidden_dim, dim, mlp_bias);
  layer.down = loader.linear(prefix + names.down, dim, config.hidden_dim, mlp_bias);
  return layer;
}

LlamaWeights load_llama_weights(const TensorSource& source, const ModelConfig& config,
                                const WeightOptions& options) {
  WeightLoader loader(source, options);
  const Names& names = names_of(loader);
  LlamaWeights weights = loader.run([&](WeightLoader& walk) {
    LlamaWeights read;
    read.embedding = walk.tensor(weight_of(names.embedding), {config.vocabulary_size, config.dim});
    for (int i = 0; i < config.n_layers; ++i) {
      read.layers.push_back(load_layer(walk, config, fmt::format(fmt::runtime(names.layer), i)));
    }
    read.final_norm = walk.vector(weight_of(names.final_norm), config.dim);
    const char* head = config.tied_head ? names.embedding : names.head;
    read.head = walk.linear(head, config.vocabulary_size, config.dim, Bias::never).matrix;
    read.head_as_stored = walk.tensor(weight_of(head), {config.vocabulary_size, config.dim});
    return read;
  });
  weights.input_forms = loader.input_forms();
  weights.all_f32 = loader.all_f32();
  return weights;
}

}  // namespace outrider
