// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of single tokens from a row of logits.
#ifndef OUTRIDER_SAMPLING_LOG_PROBS_H_
#define OUTRIDER_SAMPLING_LOG_PROBS_H_

#include <vector>

#include "base/logit_row.h"
#include "outrider/generate.h"
#include "outrider/types.h"

namespace outrider {

// Writes `of`, the token's log-probability, and `top`, the n_top likeliest tokens with theirs in
// descending order, the lowest id first among equals. log softmax of the row in double, summed in
// the order of ids: the same bits on every machine. -infinity for impossible tokens. id must be one
// of the row's.
void log_probs(LogitRow row, TokenId id, int n_top, double& of, std::vector<TokenLogProb>& top);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_LOG_PROBS_H_
