// What a row of logits says of single tokens, as logarithms of their probabilities.
#ifndef OUTRIDER_SAMPLING_LOG_PROBS_H_
#define OUTRIDER_SAMPLING_LOG_PROBS_H_

#include <vector>

#include "base/logit_row.h"
#include "outrider/generate.h"
#include "outrider/types.h"

namespace outrider {

// Writes `of`, what the token has, and `top`, the n_top likeliest with theirs, the likeliest first,
// the lowest id first among equals. log softmax of the row in double, summed in the order of ids:
// the same bits on every machine. -infinity for tokens that cannot be. id is one of the row's.
void log_probs(LogitRow row, TokenId id, int n_top, double& of, std::vector<TokenLogProb>& top);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_LOG_PROBS_H_
