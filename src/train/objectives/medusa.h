// Medusa: several heads on the target's last feature, each for a token further on (Cai et al.,
// "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads",
// arXiv 2401.10774, section 2.2.1).
#ifndef OUTRIDER_TRAIN_OBJECTIVES_MEDUSA_H_
#define OUTRIDER_TRAIN_OBJECTIVES_MEDUSA_H_

#include <memory>

#include "train/objectives/head_run.h"

namespace outrider::train {

class Objective;

struct MedusaOptions {
  HeadRun run = {};
  int n_heads = 4;
  // own: an output matrix for every head, begun from the target's. shared: all use the target's.
  bool own_lm_head = true;
  double decay = 0.8;  // head k counts decay^k
};

// Head k of 1 .. n_heads gives x + SiLU(W x + b) to its output matrix, W and b begun at zero, and
// predicts the token k places further than the target's own output does. loss = sum over k of
// decay^k times its mean cross-entropy. Log and held out: "loss_k", "agreement_k" and "overlap_k"
// (most probable tokens equal; sum min(draft_prob, target_prob)) against the target that has read
// the text up to that token; held out also "loss".
//
// Exports medusa_lm_head.safetensors and config.json as the public checkpoints have them
// (arXiv 2401.10774's code counts heads from 0): "{i}.0.linear.weight", "{i}.0.linear.bias",
// "{i}.1.weight", the last left out where the target's matrix is shared.
std::shared_ptr<Objective> make_medusa(const MedusaOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_MEDUSA_H_
