// SPDX-License-Identifier: Apache-2.0
// The configuration of an EAGLE head's single decoder layer.
#ifndef OUTRIDER_TRAIN_MODULES_HEAD_CONFIG_H_
#define OUTRIDER_TRAIN_MODULES_HEAD_CONFIG_H_

#include "model/config.h"

namespace outrider::train {

// The target's shape with one layer and the assumptions of public loaders of heads: no biases,
// rotary positions with the target's base and no scaling, a separate output matrix.
inline ModelConfig head_config(const ModelConfig& target) {
  ModelConfig config = target;
  config.n_layers = 1;
  config.attention_bias = false;
  config.mlp_bias = false;
  config.tied_head = false;
  config.rope = {};
  config.rope.theta = target.rope.theta;
  return config;
}

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_MODULES_HEAD_CONFIG_H_
