// SPDX-License-Identifier: Apache-2.0
// P-EAGLE: a head of EAGLE-3's form that drafts all tokens in one pass (Huang et al., "P-EAGLE:
// Parallel-Drafting EAGLE with Scalable Training", arXiv 2602.01469).
#ifndef OUTRIDER_TRAIN_OBJECTIVES_PARALLEL_EAGLE_H_
#define OUTRIDER_TRAIN_OBJECTIVES_PARALLEL_EAGLE_H_

#include <memory>
#include <vector>

#include "outrider/types.h"
#include "train/batches/mask_choice.h"
#include "train/objectives/head_run.h"

namespace outrider::train {

class Objective;

struct ParallelEagleOptions {
  HeadRun run = {};
  int n_layers = 4;  // as in the paper
  MaskChoice rows = {};
  TokenId mask = 0;                            // the token whose embedding mask rows read
  std::vector<TokenId> draft_vocabulary = {};  // ascending; empty: all of the target's
};

// The text's row j reads the same input as step 0 of EAGLE-3 (objectives/eagle3.h) and predicts the
// distribution of token j + 2. The dth mask row after it reads the mask's embedding, and a trained
// vector instead of features. It attends to the text's rows up to j and to the mask rows before it,
// and predicts token j + 2 + d. loss: the mean, over all rows that count, of the cross-entropy from
// the target's distribution as in EAGLE-3. The places of mask rows are drawn for each batch, the
// same for all of its sequences. (The paper also trains the embeddings; here they are the target's
// and frozen.)
//
// Held out, at a quarter of the places, with whole drafts: "loss"; "overlap_k" and "agreement_k" of
// the kth token of a draft, k from 1, over the whole vocabulary. "accepted_0" is the mean number of
// tokens from the first on at which head and target agree; "accepted_1" is the mean of the products
// of overlaps. They estimate the accepted tokens of a draft at temperatures 0 and 1.
//
// Exports as EAGLE-3 does, further layers as layers.1 and on, with mask_hidden (1, 1, 3 dim) and in
// config.json "ptd_token_id" and "parallel_drafting". Throws UsageError if the mask is not a token
// of the target, a draft has fewer than 2 tokens, a share is outside (0, 1] or there is no layer.
std::shared_ptr<Objective> make_parallel_eagle(const ParallelEagleOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_PARALLEL_EAGLE_H_
