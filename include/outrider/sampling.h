// How logits become the distribution a token is drawn from.
#ifndef OUTRIDER_SAMPLING_H_
#define OUTRIDER_SAMPLING_H_

#include <utility>
#include <vector>

#include "outrider/types.h"

namespace outrider {

// The steps, in the order they are applied (that of Hugging Face's logits processors; presence and
// frequency penalties, which it lacks, follow the repetition penalty):
//   logit bias; repetition penalty; presence and frequency penalties;   <- "raw" up to here
//   temperature; top-k; top-p; min-p.
// top-p looks at the probabilities that top-k leaves, renormalised. Hugging Face keeps every token
// that ties with the k-th, so more than k; here it is k exactly.
// Penalties see the prompt (repetition only) and the generated tokens, and, at a node of a draft
// tree, that node's own path. Ties at the k-th token and at the nucleus' end go to the lowest id.
struct SamplingParams {
  double temperature = 0;  // 0 is greedy; else logits are divided by it. >= 0
  int top_k = 0;           // keep the k likeliest tokens; 0 keeps all. >= 0
  double top_p = 1;        // keep the fewest likeliest tokens that hold this mass, the one that
                           // crosses it included. (0, 1]
  double min_p = 0;        // drop tokens below this share of the likeliest one's. [0, 1]
  double repetition_penalty =
      1;                         // divides positive, multiplies negative logits of seen tokens. > 0
  double presence_penalty = 0;   // taken off the logit of every generated token
  double frequency_penalty = 0;  // taken off once per occurrence among the generated tokens
  // Added to these tokens' logits; -infinity bans a token, +infinity is refused.
  std::vector<std::pair<TokenId, float>> logit_bias = {};
};

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_H_
