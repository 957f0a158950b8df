// SPDX-License-Identifier: Apache-2.0
// EAGLE: a head of one decoder layer that drafts from the target's features (Li, Wei, Zhang, Zhang,
// "EAGLE: Speculative Sampling Requires Rethinking Feature Uncertainty", arXiv 2401.15077).
#ifndef OUTRIDER_TRAIN_OBJECTIVES_EAGLE_H_
#define OUTRIDER_TRAIN_OBJECTIVES_EAGLE_H_

#include <memory>
#include <string>

#include "train/objectives/head_run.h"

namespace outrider::train {

class Objective;

// The head's input at place j. It predicts the feature of place j + 1, from which the target's
// output matrix computes the distribution of token j + 2 (the paper compares all four inputs). The
// feature of j is the output matrix's input there: the target's hidden state after its final norm.
enum class EagleInputs {
  feature_shifted_token,  // feature j and token j + 1: EAGLE itself
  feature_token,          // feature j and token j
  token,                  // token j + 1 alone
  feature,                // feature j alone
};

// "feature+shifted-token", "feature+token", "token", "feature". Throws UsageError on other names.
EagleInputs eagle_inputs_named(const std::string& name);
std::string name_of(EagleInputs inputs);

struct EagleOptions {
  HeadRun run = {};
  EagleInputs inputs = EagleInputs::feature_shifted_token;
  // In training, noise from U(-noise, noise) is added to the features that are read (the paper's
  // augmentation, 0.1). The public code multiplies it by 512 over the length of the text; this code
  // does not.
  double noise = 0.1;
  double token_weight = 0.1;  // of the cross-entropy beside the regression (the paper's w_cls)
};

// loss = smooth L1 between predicted and true features, mean over the feature's elements, plus
// token_weight times the cross-entropy from the target's distribution to the head's. Both are means
// over places, each weighted by the weight of its predicted token. Log: "feature_loss",
// "token_loss", "agreement".
//
// Held out, for n = 0 .. 4, along the text's tokens: "overlap_n" is the mean of sum min(draft_prob,
// target_prob) where the last n features that the head read were its own predictions (the paper's
// n-alpha for chains). "agreement_n" is the share of places where both have the same most probable
// token. "loss", "feature_loss" and "token_loss" are those of n = 0, without noise.
//
// Exports config.json and model.safetensors with the public checkpoints' tensor names. The target's
// embedding is included, since public loaders require it. Adds to the public config.json:
// "eagle_version": 1 and "eagle_inputs".
std::shared_ptr<Objective> make_eagle(const EagleOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_EAGLE_H_
