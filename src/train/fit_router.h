// A router fitted to text: when a cascade should leave a position to the target.
#ifndef OUTRIDER_TRAIN_FIT_ROUTER_H_
#define OUTRIDER_TRAIN_FIT_ROUTER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "speculate/rules/router.h"
#include "train/corpus.h"
#include "train/teacher.h"

namespace outrider::train {

// One position of a text, seen by both models.
struct RouterSample {
  RouterFeatures features = {};
  double draft_loss = 0;   // -log draft_prob of the text's token, nats
  double target_loss = 0;  // -log target_prob of it
  double total_variation = 0;
};

// Runs both models over batches [first, first + n) and looks at every place that counts. Losses are
// cut at 30 nats: a token that a model excludes is to count, but not as if it were everything.
// on_batch, if given, is called after each batch. Throws Error if the vocabularies' sizes differ.
std::vector<RouterSample> collect_router_samples(Teacher& target, Teacher& drafter,
                                                 BatchSource& batches, std::int64_t first,
                                                 std::int64_t n,
                                                 const std::function<void()>& on_batch = {});

// The price of a rejection, nats, at which neither model alone costs less than the other:
// what the target gains a token over what it is rejected. Far below it a router leaves everything
// to the target, far above everything to the drafter. 0 if the target gains nothing, or never
// differs.
double balanced_price(const std::vector<RouterSample>& samples);

// The deferral that costs least is the target's wherever
//   target_loss + price * total_variation < draft_loss,
// since a position left to the target is rejected with a probability of total_variation
// (Narasimhan et al. 2024, lemmas 3 and 4, with the text's token in the place of the unknown
// label). The fit is logistic regression on that decision, each sample weighted by how much it
// matters, |draft_loss - target_loss - price * total_variation|: a surrogate whose minimiser over
// all functions decides right everywhere. Newton's method with a ridge of 1e-6 of the total weight.
// Throws Error on no samples.
RouterWeights fit_router(const std::vector<RouterSample>& samples, double price);

// Means over samples if positions are left to the target as the router says.
struct RouterOutcome {
  double loss = 0;       // nats a token
  double rejection = 0;  // expected
  double deferral_rate = 0;
};
RouterOutcome judge_router(const std::vector<RouterSample>& samples, const RouterWeights& router);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_FIT_ROUTER_H_
