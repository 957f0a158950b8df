// SPDX-License-Identifier: Apache-2.0
// Medusa: several heads on the target's last feature; each head predicts a token one place later
// than the head before (Cai et al., "Medusa: Simple LLM Inference Acceleration Framework with
// Multiple Decoding Heads", arXiv 2401.10774, section 2.2.1).
#ifndef OUTRIDER_TRAIN_OBJECTIVES_MEDUSA_H_
#define OUTRIDER_TRAIN_OBJECTIVES_MEDUSA_H_

#include <memory>

#include "train/objectives/head_run.h"

namespace outrider::train {

class Objective;

struct MedusaOptions {
  HeadRun run = {};
  int n_heads = 4;
  // true: an output matrix for every head, initialised with the target's. false: all heads use the
  // target's.
  bool own_lm_head = true;
  double decay = 0.8;  // the weight of head k is decay^k
};

// Head k of 1 .. n_heads computes x + SiLU(W x + b) as input of its output matrix; W and b are
// initially zero. It predicts the token k places after the one that the target predicts there. loss
// = sum over k of decay^k times head k's mean cross-entropy. Log and held out: "loss_k",
// "agreement_k" and "overlap_k" (most probable tokens equal; sum min(draft_prob, target_prob))
// against the target that has read the text up to that token; held out also "loss".
//
// Exports medusa_lm_head.safetensors and config.json in the format of the public checkpoints (arXiv
// 2401.10774's code counts heads from 0): "{i}.0.linear.weight", "{i}.0.linear.bias",
// "{i}.1.weight". The last is left out if the target's matrix is shared.
std::shared_ptr<Objective> make_medusa(const MedusaOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_MEDUSA_H_
