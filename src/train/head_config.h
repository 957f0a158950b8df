// The configuration of the one decoder layer of an EAGLE head.
#ifndef OUTRIDER_TRAIN_HEAD_CONFIG_H_
#define OUTRIDER_TRAIN_HEAD_CONFIG_H_

#include "model/config.h"

namespace outrider::train {

// The target's shape with one layer and what public loaders of heads assume: no biases, rotary
// positions of the target's base without scaling, an output matrix of its own.
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

#endif  // OUTRIDER_TRAIN_HEAD_CONFIG_H_
