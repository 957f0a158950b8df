// SPDX-License-Identifier: Apache-2.0
// DeepSeek-V2 and V3 (DeepSeek-AI 2024, arXiv 2405.04434 and 2412.19437) and models of their form:
// latent attention; dense layers first, then layers of many small experts with a shared expert that
// every row uses.
#ifndef OUTRIDER_MODEL_FAMILIES_EXPERTS_DEEPSEEK_H_
#define OUTRIDER_MODEL_FAMILIES_EXPERTS_DEEPSEEK_H_

#include <optional>
#include <utility>

#include "model/families/experts/routed.h"
#include "model/families/family.h"
#include "model/load/config_source.h"

namespace outrider {

// What these configurations add to ModelConfig.
struct DeepSeekConfig {
  ModelConfig decoder;
  int query_rank = 0;     // width of the input of the query product; 0: the layer's input
  int plain_dim = 0;      // elements of a query head without RoPE
  int value_dim = 0;      // of a head
  float score_scale = 0;  // of attention
  RoutedConfig routed;
};

class DeepSeek : public Family {
 public:
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  std::optional<ModuleNames> module_names() const override { return ModuleNames{}; }
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override;

 protected:
  DeepSeek(const ConfigSource& source, const RoutedForm& form);

 private:
  explicit DeepSeek(DeepSeekConfig config) : Family(config.decoder), own_(std::move(config)) {}
  LatentAttention load_attention(LayerLoader& from) const;

  DeepSeekConfig own_;
};

// V2 and V2-Lite; and all GGUF files, including those of models of V3's form, since their
// architecture is deepseek2.
class DeepSeekV2 final : public DeepSeek {
 public:
  explicit DeepSeekV2(const ConfigSource& source);
};

// V3, R1, Moonlight; Kimi K2 (Moonshot AI 2025, arXiv 2507.20534).
class DeepSeekV3 final : public DeepSeek {
 public:
  explicit DeepSeekV3(const ConfigSource& source);
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_EXPERTS_DEEPSEEK_H_
