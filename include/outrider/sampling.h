// SPDX-License-Identifier: Apache-2.0
// How logits become the distribution a token is drawn from.
#ifndef OUTRIDER_SAMPLING_H_
#define OUTRIDER_SAMPLING_H_

#include <utility>
#include <vector>

#include "outrider/types.h"

namespace outrider {

// Sampling parameters. The steps are applied in the order of Hugging Face's logits processors:
//   logit bias; repetition penalty; presence and frequency penalties;
//   temperature; top-k; top-p; min-p.
// Cascade rules compare the models after penalties, before temperature. Hugging Face has no
// presence and frequency penalties. top-p applies to the renormalised probabilities that top-k
// leaves. top-k keeps exactly k tokens; Hugging Face also keeps tokens that tie with the k-th.
// Penalties count the prompt (repetition only) and the generated tokens, and at a node of a draft
// tree the node's path. Ties at the k-th token and at the end of the nucleus go to the lowest id.
struct SamplingParams {
  double temperature = 0;  // 0 is greedy; else logits are divided by it. >= 0
  int top_k = 0;           // keep the k likeliest tokens; 0 keeps all. >= 0
  double top_p = 1;  // keep the fewest likeliest tokens that hold this mass, the one that crosses
                     // it included. (0, 1]
  double min_p = 0;  // drop tokens below this share of the likeliest one's probability. [0, 1]
  double repetition_penalty =
      1;                         // divides positive, multiplies negative logits of seen tokens. > 0
  double presence_penalty = 0;   // subtracted from the logit of every generated token
  double frequency_penalty = 0;  // subtracted once per occurrence among the generated tokens
  // Added to these tokens' logits; -infinity bans a token, +infinity and NaN are refused.
  std::vector<std::pair<TokenId, float>> logit_bias = {};
};

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_H_
