// Heads that draft a block in one pass: DFlash (arXiv 2602.06036) and DSpark (arXiv 2607.05147),
// which has a Markov head and an estimate of acceptance beside it.
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
  int n_slots = 16;         // of a block, the anchor's included
  int n_anchors = 32;       // blocks of a sequence in a step
  TokenId mask = kNoToken;  // what slots behind the anchor read: any token of the target
  // How much slots count: exp(-k / gamma), or by D-PACE (block_losses.h).
  enum class Weights { decay, d_pace };
  Weights weights = Weights::decay;
  double gamma = 7;
  BlockHeadConfig::Markov::Form markov = BlockHeadConfig::Markov::Form::vanilla;  // of dspark
  int markov_rank = 256;                                                          // likewise
};

// The hidden states that are fused, as ForwardRequest::feature_layers counts them: five, from after
// 2 layers to after n - 2, as DFlash's authors have it; of a target of fewer than eight layers,
// where these would fall together, up to five from after 1 layer to after n - 1.
std::vector<int> block_feature_layers(int n_layers);

// Each step draws blocks of the text. A block is an anchor, a token of the text, and masks; its
// slots see the target's features strictly in front of the anchor and one another. What they give
// goes through the target's output matrix, which is frozen, as is the embedding.
//
// dflash: slot k = 1 .. n_slots - 1 says the token at its own place. loss = sum of w_k times the
// cross-entropy from the text's token over the sum of w_k, or with D-PACE over the number of
// blocks.
// dspark: slot k = 0 .. n_slots - 1 says the token behind its place, corrected by the token at it
// (teacher forcing). loss = 0.1 cross-entropy + 0.9 |draft_prob - target_prob|_1 + 1.0 binary
// cross-entropy of the confidence to the acceptance 1 - |draft_prob - target_prob|_1 / 2, each a
// mean like dflash's.
//
// Log: "token_loss", "law_distance" and "confidence_loss" (dspark), and "reach": the expected
// number of tokens in a row that would be the text's, sum over k of the product of their drafted
// probabilities. Held out: "loss" and these, and along the given text "accepted_0" (the mean number
// of tokens in a row at which head and target have the same likeliest one), "accepted_1" (the sum
// over k of the product of sum min(draft_prob, target_prob)), and "agreement_k" and "overlap_k" of
// the kth drafted token, from 1.
//
// Exports config.json and model.safetensors as the authors' programs name things, without copies of
// the target's matrices; model/heads/block_head.h reads them.
//
// Throws UsageError for numbers that make no head.
std::shared_ptr<Objective> make_block_head(const BlockHeadOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_BLOCK_HEAD_H_
