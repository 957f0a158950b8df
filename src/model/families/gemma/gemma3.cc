// SPDX-License-Identifier: Apache-2.0
#include "model/families/gemma/gemma3.h"

#include <fmt/format.h>

#include "model/config_section.h"

namespace outrider {
namespace {

constexpr GemmaForm kGemma3 = {
    .architecture = "gemma3",
    .rope = {.layer_type = "full_attention", .default_theta = 1e6},
    .layers_of_27b = 62,
    .whole_every = {"sliding_window_pattern", "attention.sliding_window_pattern"},
    .default_whole_every = 6};

RopeConfig read_local_rope(const ConfigSource& source, const ModelConfig& config) {
  ModelConfig local = config;
  constexpr RopeKeys kKeys = {.theta = {"rope_local_base_freq", "rope.freq_base_swa"},
                              .layer_type = "sliding_attention",
                              .may_be_scaled = false};
  local.rotary_dim = source.rotary_dim(kKeys, config.head_dim);
  local.rope = source.rope(kKeys, local.rotated_dim());
  check_config(local, kReadConfig, source.description());
  return local.rope;
}

}  // namespace

Gemma3::Gemma3(const ConfigSource& source)
    : Gemma(source, kGemma3), local_rope_(read_local_rope(source, config())) {
  // transformers and llama.cpp both ignore it for Gemma 3, whatever a file says.
  constexpr ConfigKey kCap = {"attn_logit_softcapping", "attn_logit_softcapping"};
  if (const double cap = source.real(kCap).value_or(0); cap != 0) {
    source.fail(kCap, "absent (Gemma 3 does not cap scores)", fmt::format("{}", cap));
  }
}

std::vector<RopeTable> Gemma3::ropes() const {
  ModelConfig local = config();
  local.rope = local_rope_;
  return {rope_table(config()), rope_table(local)};
}

DecoderLayer Gemma3::load_layer(LayerLoader& from, int layer) const {
  DecoderLayer loaded = Gemma::load_layer(from, layer);
  Attention& attention = loaded.attention;
  if (attention.window > 0) {
    attention.rope = kLocal;
    attention.scale = attention_scale(local_rope_);
  }
  attention.query_norm = load_norm(from, {"self_attn.q_norm", "attn_q_norm"}, config().head_dim);
  attention.key_norm = load_norm(from, {"self_attn.k_norm", "attn_k_norm"}, config().head_dim);
  return loaded;
}

}  // namespace outrider
