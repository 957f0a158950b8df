// SPDX-License-Identifier: Apache-2.0
// LFM2, dense (Liquid AI 2025): a Qwen3 in which most layers have a gated short convolution in
// place of attention.
#ifndef OUTRIDER_MODEL_FAMILIES_RECURRENT_LFM2_H_
#define OUTRIDER_MODEL_FAMILIES_RECURRENT_LFM2_H_

#include <vector>

#include "model/families/llama.h"

namespace outrider {

class Lfm2 final : public Family {
 public:
  explicit Lfm2(const ConfigSource& source);
  DecoderNames names() const override;
  RecurrentLayers recurrent_layers() const override;
  DecoderLayer load_layer(LayerLoader& from, int layer) const override;
  void compose(PassBuilder& pass, const DecoderLayer& layer) const override;

 private:
  ShortConvolution load_convolution(LayerLoader& from) const;
  Attention load_attention(LayerLoader& from) const;

  std::vector<bool> attends_;  // (n_layers): whether the layer has attention
  int n_taps_;
  bool convolution_bias_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_RECURRENT_LFM2_H_
