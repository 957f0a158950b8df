// EAGLE-3: a head of one decoder layer that reads features of three depths of the target and is
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
  // Step i counts decay^i. (The public code's 0.8; the paper gives no weights.)
  double decay = 0.8;
  std::vector<TokenId> draft_vocabulary = {};  // ascending; empty: all of the target's
};

// The hidden states that are fused, counted as ForwardRequest::feature_layers counts them: those
// after 2, n / 2 and n - 3 layers, as in the public code; targets of fewer than seven layers, where
// these would fall together, give those after 1, n / 2 and n - 1 (or the nearest there are).
std::array<int, 3> eagle3_feature_layers(int n_layers);

// Step 0 reads at place j the target's features of j, brought to the target's width by fc, and
// token j + 1, and predicts the distribution of token j + 2. Step i reads at row j what step i - 1
// gave there and token j + 1 + i, at position j + i; it sees the rows of step 0 up to j and the
// steps since at row j, as a chain drafted from place j would. loss = sum over i of decay^i times
// the cross-entropy from the target's distribution, renormalised over the draft vocabulary; places
// whose most probable token is outside it count as zero. There is no loss on features.
//
// Log: "loss_i", and "agreement" of step 0. Held out, for every step: "loss_i", "agreement_i" and
// "overlap_i", as in eagle.h, over the whole vocabulary; "loss" is the weighted sum.
//
// Exports config.json and model.safetensors with the public checkpoints' tensor names: fc, midlayer
// (its attention reads twice the width), norm, lm_head, d2t (draft id i is token i + d2t[i]) and
// t2d (whether a token is in the draft vocabulary); the embedding is the target's and left out.
// Adds to the public config.json "eagle_version": 3 and "feature_layers".
//
// Throws UsageError for a step count below 1 and Error for a draft vocabulary that is no ascending
// list of the target's tokens.
std::shared_ptr<Objective> make_eagle3(const Eagle3Options& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_EAGLE3_H_
