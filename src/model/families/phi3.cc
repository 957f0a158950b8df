// SPDX-License-Identifier: Apache-2.0
#include "model/families/phi3.h"

#include <fmt/format.h>

#include "model/load/layer_windows.h"

namespace outrider {
namespace {

// The converter to GGUF writes 0 for no window.
int read_phi_window(const ConfigSource& source) {
  constexpr ConfigKey kWindow = {"sliding_window", "attention.sliding_window"};
  if (source.is_gguf() && source.whole(kWindow).value_or(0) == 0) return 0;
  return read_window(source, kWindow, 0);
}

ModelConfig read_phi3(const ConfigSource& source) {
  // Phi-4-mini's files have both. No model shows the meaning of values other than 1.
  for (const char* name : {"full_attn_mod", "interpolate_factor"}) {
    const ConfigKey key = {name, nullptr};
    const int value = source.whole(key).value_or(1);
    if (value != 1) source.fail(key, "1", fmt::format("{}", value));
  }
  return read_decoder_config(source,
                             {.architecture = "phi3", .rope = {.share = "partial_rotary_factor"}});
}

}  // namespace

Phi3::Phi3(const ConfigSource& source)
    : Family(read_phi3(source)), window_(read_phi_window(source)) {}

DecoderLayer Phi3::load_layer(LayerLoader& from, int) const {
  const ModelConfig& config = this->config();
  const int dim = config.dim;
  const int n_queries = config.n_heads * config.head_dim;
  const int n_keys = config.n_kv_heads * config.head_dim;
  const int hidden = config.hidden_dim;

  DecoderLayer loaded;
  loaded.before_attention = load_norm(from, {"input_layernorm", "attn_norm"}, dim);
  Attention& attention = loaded.attention;
  attention = attention_of(config);
  attention.window = window_;
  const auto rows_of_heads = [&](int first, int n) {
    return from.linear_rows({"self_attn.qkv_proj", "attn_qkv"}, n_queries + 2 * n_keys, first, n,
                            dim, Bias::never);
  };
  attention.query = rows_of_heads(0, n_queries);
  attention.key = rows_of_heads(n_queries, n_keys);
  attention.value = rows_of_heads(n_queries + n_keys, n_keys);
  attention.output = from.linear({"self_attn.o_proj", "attn_output"}, dim, n_queries, Bias::never);
  loaded.before_mlp = load_norm(from, {"post_attention_layernorm", "ffn_norm"}, dim);
  // GGUF names both together "up".
  const auto half_of_mlp = [&](int first) {
    return from.linear_rows({"mlp.gate_up_proj", "ffn_up"}, 2 * hidden, first, hidden, dim,
                            Bias::never);
  };
  loaded.mlp.gate = half_of_mlp(0);
  loaded.mlp.up = half_of_mlp(hidden);
  loaded.mlp.down = from.linear({"mlp.down_proj", "ffn_down"}, dim, hidden, Bias::never);
  return loaded;
}

}  // namespace outrider
