// SPDX-License-Identifier: Apache-2.0
// Fits a router to text: it decides at which positions a cascade defers to the target.
#ifndef OUTRIDER_TRAIN_FIT_ROUTER_H_
#define OUTRIDER_TRAIN_FIT_ROUTER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "speculate/rules/router.h"
#include "train/batches/corpus.h"
#include "train/teacher.h"

namespace outrider::train {

// One position of a text, evaluated by both models.
struct RouterSample {
  RouterFeatures features = {};
  double draft_loss = 0;   // -log draft_prob of the text's token, nats
  double target_loss = 0;  // -log target_prob of that token, nats
  double total_variation = 0;
};

// Runs both models over batches [first, first + n) and returns a sample for every place that
// counts. Losses are clipped at 30 nats, so that a token with probability 0 does not dominate the
// fit. on_batch, if given, is called after each batch. Throws Error if the vocabularies' sizes
// differ.
std::vector<RouterSample> collect_router_samples(Teacher& target, Teacher& drafter,
                                                 BatchSource& batches, std::int64_t first,
                                                 std::int64_t n,
                                                 const std::function<void()>& on_batch = {});

// The price of a rejection, nats, at which neither model alone costs less than the other: the
// target's mean gain in loss divided by its mean rejection probability. Far below this price a
// router defers every position to the target, far above it none. 0 if the target gains nothing, or
// the models never differ.
double balanced_price(const std::vector<RouterSample>& samples);

// Fits the router to the cheapest deferral. Deferring a position costs less wherever
//   target_loss + price * total_variation < draft_loss,
// since a deferred position is rejected with probability total_variation (Narasimhan et al. 2024,
// lemmas 3 and 4, with the text's token as the unknown label). The fit is logistic regression on
// that decision. Each sample has the weight |draft_loss - target_loss - price * total_variation|,
// so the minimiser over all functions makes the right decision everywhere. Newton's method with a
// ridge of 1e-6 of the total weight. Throws Error on no samples.
RouterWeights fit_router(const std::vector<RouterSample>& samples, double price);

// Means over samples when the router decides which positions go to the target.
struct RouterOutcome {
  double loss = 0;       // nats a token
  double rejection = 0;  // expected
  double deferral_rate = 0;
};
RouterOutcome judge_router(const std::vector<RouterSample>& samples, const RouterWeights& router);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_FIT_ROUTER_H_
