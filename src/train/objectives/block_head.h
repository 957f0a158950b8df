// SPDX-License-Identifier: Apache-2.0
// Heads that draft a block in one pass: DFlash (arXiv 2602.06036) and DSpark (arXiv 2607.05147).
// DSpark adds a Markov head and an estimate of acceptance.
#ifndef OUTRIDER_TRAIN_OBJECTIVES_BLOCK_HEAD_H_
#define OUTRIDER_TRAIN_OBJECTIVES_BLOCK_HEAD_H_

#include <memory>
#include <string>
#include <vector>

#include "model/heads/block_head_config.h"
#include "outrider/types.h"
#include "train/objectives/head_run.h"

namespace outrider::train {

class Objective;

// "vanilla", "gated", "rnn". Throws UsageError on other names.
BlockHeadConfig::Markov::Form markov_form_named(const std::string& name);
std::string name_of(BlockHeadConfig::Markov::Form form);

struct BlockHeadOptions {
  HeadRun run = {};
  BlockHeadKind kind = BlockHeadKind::dflash;
  int n_layers = 5;
  int n_slots = 16;         // of a block, the anchor's slot included
  int n_anchors = 32;       // blocks of a sequence in a step
  TokenId mask = kNoToken;  // input of the slots after the anchor: any token of the target
  // Weights of the slots: exp(-k / gamma), or D-PACE (block_losses.h).
  enum class Weights { decay, d_pace };
  Weights weights = Weights::decay;
  double gamma = 7;
  BlockHeadConfig::Markov::Form markov = BlockHeadConfig::Markov::Form::vanilla;  // of dspark
  int markov_rank = 256;                                                          // of dspark
};

// The hidden states that are fused, numbered as in ForwardRequest::feature_layers: five, from after
// 2 layers to after n - 2, as in DFlash. Fewer than eight layers would give the same state twice;
// the states are then up to five, from after 1 layer to after n - 1.
std::vector<int> block_feature_layers(int n_layers);

// Each step draws blocks of the text. A block is an anchor (a token of the text) and masks. Its
// slots attend to one another and to the target's features strictly before the anchor. The slots'
// outputs are multiplied by the target's output matrix. That matrix and the embedding are frozen.
//
// dflash: slot k = 1 .. n_slots - 1 predicts the token at its own place. loss = sum of w_k times
// the cross-entropy from the text's token, divided by the sum of w_k, or with D-PACE by the number
// of blocks.
//
// dspark: slot k = 0 .. n_slots - 1 predicts the token after its place. The Markov head
// corrects the prediction with the token at the slot's place (teacher forcing). loss = 0.1
// cross-entropy + 0.9 |draft_prob - target_prob|_1 + 1.0 binary cross-entropy of the confidence to
// the acceptance 1 - |draft_prob - target_prob|_1 / 2, each a weighted mean as for dflash.
//
// Log: "token_loss", "l1_distance" and "confidence_loss" (dspark), and "reach": the expected
// number of drafted tokens before the first that differs from the text, sum over k of the product
// of the drafted probabilities of the text's tokens. Held out: "loss" and these. Along the given
// text also "accepted_0" (the mean number of tokens before the head's and the target's likeliest
// token first differ) and "accepted_1" (the sum over k of the product of sum min(draft_prob,
// target_prob)). "agreement_k" and "overlap_k" are of the kth drafted token, from 1.
//
// Exports config.json and model.safetensors with the names of the authors' programs, without copies
// of the target's matrices; model/heads/block_head.h reads them.
//
// Throws UsageError for invalid options.
std::shared_ptr<Objective> make_block_head(const BlockHeadOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_BLOCK_HEAD_H_
