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

// The forms of a Markov head by name: "vanilla", "gated", "rnn". Throws UsageError on other names.
BlockHeadConfig::Markov::Form markov_form_named(const std::string& name);
std::string name_of(BlockHeadConfig::Markov::Form form);

struct BlockHeadOptions {
  HeadRun run = {};  // the target, the texts, the seed: as for every head
  BlockHeadKind kind = BlockHeadKind::dflash;
  int n_layers = 5;         // of the head, at least 1
  int n_slots = 16;         // of a block, the anchor's slot included; 2 to kMaxBlockSlots
  int n_anchors = 32;       // blocks of a sequence in a step
  TokenId mask = kNoToken;  // input of the slots after the anchor: must be a token of the target
  // Weights of a block's drafted tokens, numbered k = 0, 1, ...: exp(-k / gamma), or D-PACE
  // (block_losses.h).
  enum class Weights { decay, d_pace };
  Weights weights = Weights::decay;
  double gamma = 7;
  BlockHeadConfig::Markov::Form markov = BlockHeadConfig::Markov::Form::vanilla;  // of dspark
  int markov_rank = 256;                                                          // of dspark
};

// The target's hidden states that the head reads, numbered as in ForwardRequest::feature_layers.
// n_layers: the target's, called n here. Five, from after 2 layers to after n - 2, as in DFlash.
// Fewer than eight layers would give the same state twice; the states are then up to five, from
// after 1 layer to after n - 1.
std::vector<int> block_feature_layers(int n_layers);

// The head's objective. Each step draws blocks of the text. A block is an anchor (a token of the
// text) and masks; slot i is at the anchor's position plus i. The slots attend to one another and
// to the target's features strictly before the anchor. The slots' outputs are multiplied by the
// target's output matrix. That matrix and the embedding are frozen.
//
// dflash: slot i = 1 .. n_slots - 1 predicts the token at its own position. w is the slot's weight
// (BlockHeadOptions::Weights) times the text's weight of that token. loss = sum of w times the
// cross-entropy of the text's token, divided by the sum of w, or with D-PACE by the number of
// blocks.
//
// dspark: slot i = 0 .. n_slots - 1 predicts the token after its position. The Markov head corrects
// the prediction with the text's token at the slot's position (teacher forcing). loss = 0.1
// cross-entropy + 0.9 |draft_prob - target_prob|_1 + 1.0 binary cross-entropy of the confidence to
// the acceptance 1 - |draft_prob - target_prob|_1 / 2, each a weighted mean as for dflash.
//
// Log: "token_loss", "l1_distance" (the distance above) and "confidence_loss" (both of dspark),
// and "reach": the expected number of drafted tokens before the first that differs from the text.
// It is the sum over k of the product of the drafted probabilities of the text's tokens, a mean
// over blocks. Evaluations on held-out text have "loss" and these, and along the given text
// "accepted_0" (the mean number of tokens before the head's and the target's likeliest token first
// differ) and "accepted_1" (the sum over k of the product of sum min(draft_prob, target_prob)).
// "agreement_k" and "overlap_k" are of the kth drafted token, from 1.
//
// Exports config.json and model.safetensors with the keys and tensor names of the authors'
// programs, without copies of the target's matrices; model/heads/block_head.h reads them.
//
// Throws UsageError for invalid options.
std::shared_ptr<Objective> make_block_head(const BlockHeadOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_BLOCK_HEAD_H_
