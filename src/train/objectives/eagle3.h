// SPDX-License-Identifier: Apache-2.0
// EAGLE-3: a head of one decoder layer that reads features from three depths of the target and is
// trained on its own output (Li, Wei, Zhang, Zhang, "EAGLE-3: Scaling up Inference Acceleration of
// Large Language Models via Training-Time Test", arXiv 2503.01840).
#ifndef OUTRIDER_TRAIN_OBJECTIVES_EAGLE3_H_
#define OUTRIDER_TRAIN_OBJECTIVES_EAGLE3_H_

#include <array>
#include <memory>
#include <vector>

#include "outrider/types.h"
#include "train/objectives/head_run.h"

namespace outrider::train {

class Objective;

struct Eagle3Options {
  HeadRun run = {};
  int n_steps = 7;  // of the training-time test
  // The weight of step i is decay^i. (0.8 is from the public code; the paper gives no weights.)
  double decay = 0.8;
  std::vector<TokenId> draft_vocabulary = {};  // ascending; empty: all of the target's
};

// The hidden states that are fused, numbered as in ForwardRequest::feature_layers: those after 2, n
// / 2 and n - 3 layers, as in the public code. Targets of fewer than seven layers would give the
// same state twice; they use those after 1, n / 2 and n - 1 layers (or the nearest that exist).
std::array<int, 3> eagle3_feature_layers(int n_layers);

// Step 0 reads at place j the target's features of j, projected to the target's width by fc, and
// token j + 1. It predicts the distribution of token j + 2. Step i reads at row j the output of
// step i - 1 at row j and token j + 1 + i, at position j + i. It attends to the rows of step 0 up
// to j and to row j of the later steps, as a chain drafted from place j does. loss = sum over i of
// decay^i times the cross-entropy from the target's distribution, renormalised over the draft
// vocabulary. Places whose most probable token is outside it count as zero. There is no loss on
// features.
//
// Log: "loss_i", and "agreement" of step 0. Held out, for every step: "loss_i", "agreement_i" and
// "overlap_i", as in eagle.h, over the whole vocabulary; "loss" is the weighted sum.
//
// Exports config.json and model.safetensors with the public checkpoints' tensor names: fc, midlayer
// (its attention reads twice the width), norm, lm_head, d2t (draft id i is token i + d2t[i]) and
// t2d (whether a token is in the draft vocabulary). The embedding is the target's and is left out.
// Adds to the public config.json "eagle_version": 3 and "feature_layers".
//
// Throws UsageError for a step count below 1, and Error for a draft vocabulary that is not an
// ascending list of the target's tokens.
std::shared_ptr<Objective> make_eagle3(const Eagle3Options& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_EAGLE3_H_
