// SPDX-License-Identifier: Apache-2.0
#include "model/families/gemma/gemma2.h"

#include <string>

namespace outrider {
namespace {

constexpr GemmaForm kGemma2 = {.architecture = "gemma2",
                               .layers_of_27b = 46,
                               // transformers has no such key for it: layer_types lists the layers.
                               .whole_every = {nullptr, "attention.sliding_window_pattern"},
                               .default_whole_every = 2,
                               // GGUF files from before these keys have caps as well.
                               .default_score_cap = 50,
                               .default_logit_cap = 30};

}  // namespace

Gemma2::Gemma2(const ConfigSource& source) : Gemma(source, kGemma2) {
  // An older name of hidden_activation, which published files have as well. For Gemma, "gelu" meant
  // GELU by tanh.
  constexpr ConfigKey kActivation = {"hidden_act", nullptr};
  const std::string activation = source.text(kActivation).value_or("gelu_pytorch_tanh");
  if (activation != "gelu_pytorch_tanh" && activation != "gelu") {
    source.fail(kActivation, "gelu_pytorch_tanh", activation);
  }
}

}  // namespace outrider
