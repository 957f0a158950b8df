// SPDX-License-Identifier: Apache-2.0
#include "model/families/granite.h"

#include <fmt/format.h>

namespace outrider {
namespace {

// Leftovers in GGUF files of dense Granite 4, which the converter makes from a hybrid's
// configuration: the shape of Mamba-2 layers that do not exist (their tensors would be refused),
// and the MLP's width under a second name.
void note_leftovers_of_hybrids(const ConfigSource& source) {
  for (const char* name : {"ssm.conv_kernel", "ssm.state_size", "ssm.group_count", "ssm.inner_size",
                           "ssm.time_step_rank", "expert_shared_feed_forward_length"}) {
    (void)source.whole({nullptr, name});
  }
}

ModelConfig read_granite(const ConfigSource& source) {
  ModelConfig config = read_decoder_config(source, {.architecture = "granite"});
  if (source.is_gguf()) note_leftovers_of_hybrids(source);
  config.attention_bias = source.has_bias("attention_bias", "blk.0.attn_q.bias");
  config.mlp_bias = source.has_bias("mlp_bias", "blk.0.ffn_gate.bias");
  return config;
}

float read_multiplier(const ConfigSource& source, const ConfigKey& key, float otherwise) {
  const double value = source.real(key).value_or(otherwise);
  // Far beyond real ones; no product leaves f32's range.
  if (!(value >= 1e-6 && value <= 1e6)) source.fail(key, "1e-6 to 1e6", fmt::format("{}", value));
  return static_cast<float>(value);
}

}  // namespace

bool granite_gguf_has_rope(const ConfigSource& source) {
  return source.flag({nullptr, "rope.scaling.finetuned"}).value_or(true);
}

GraniteMultipliers read_granite_multipliers(const ConfigSource& source, const ModelConfig& config) {
  return {
      .embedding = read_multiplier(source, {"embedding_multiplier", "embedding_scale"}, 1),
      // llama.cpp uses 1 / sqrt(head_dim) if a file has no scale.
      .scores = read_multiplier(source, {"attention_multiplier", "attention.scale"},
                                source.is_gguf() ? default_attention_scale(config) : 1.0F),
      .residual = read_multiplier(source, {"residual_multiplier", "residual_scale"}, 1),
      .logits = read_multiplier(source, {"logits_scaling", "logit_scale"}, 1),
  };
}

Granite::Granite(const ConfigSource& source)
    : Family(read_granite(source)),
      has_rope_(!source.is_gguf() || granite_gguf_has_rope(source)),
      multipliers_(read_granite_multipliers(source, config())) {}

std::vector<RopeTable> Granite::ropes() const {
  return has_rope_ ? Family::ropes() : std::vector<RopeTable>{};
}

DecoderLayer Granite::load_layer(LayerLoader& from, int) const {
  // The converter to GGUF permutes query and key rows as for Llama.
  DecoderLayer loaded = load_llama_layer(from, config(), {.interleaved = from.is_gguf()});
  const auto of_rope = static_cast<float>(config().rope.attention_factor);
  loaded.attention.scale = multipliers_.scores * of_rope * of_rope;
  if (!has_rope_) loaded.attention.rope = kNoRope;
  return loaded;
}

void Granite::compose(PassBuilder& pass, const DecoderLayer& layer) const {
  pass.add(pass.attention(pass.norm(pass.stream(), layer.before_attention), layer.attention),
           multipliers_.residual);
  pass.add(pass.gated_mlp(pass.norm(pass.stream(), layer.before_mlp), layer.mlp),
           multipliers_.residual);
}

}  // namespace outrider
