// SPDX-License-Identifier: Apache-2.0
// Probabilities of single tokens in the softmax of a row.
#ifndef OUTRIDER_SAMPLING_RAW_PROBS_H_
#define OUTRIDER_SAMPLING_RAW_PROBS_H_

#include <span>

#include "outrider/types.h"

namespace outrider {

// The probability that Transform::raw_distribution() gives a token, to the bit, without computing
// the distribution. A level of the small model in models/, whose rows have 4,096 logits, takes 51
// us with it and 57 with a distribution. Invalid logits as there.
class RawProbs {
 public:
  RawProbs() = default;
  // The logits must outlive it.
  explicit RawProbs(std::span<const float> penalised);

  double prob(TokenId token) const;

 private:
  std::span<const float> logits_;
  float largest_ = 0;
  TokenId likeliest_ = kNoToken;  // for a row without a logit above -infinity: it has probability 1
  double scale_ = 0;              // 1 / (sum of the weights)
};

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_RAW_PROBS_H_
