// SPDX-License-Identifier: Apache-2.0
// gpt-oss (OpenAI 2025, arXiv 2508.10925): layers with and without a window alternate, each query
// head has a sink, and every layer has experts, whose products all have biases.
#ifndef OUTRIDER_MODEL_FAMILIES_GPT_GPT_OSS_H_
#define OUTRIDER_MODEL_FAMILIES_GPT_GPT_OSS_H_

#include <vector>

#include "model/families/llama.h"
#include "model/load/expert_loader.h"

namespace outrider {

class GptOss final : public Family {
 public:
  explicit GptOss(const ConfigSource& source);
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override {
    compose_pre_norm(pass, layer);
  }

 private:
  std::vector<int> windows_;  // (n_layers) tokens; 0: all
  float limit_;               // of the experts' gate and up products
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_GPT_GPT_OSS_H_
