// How sure a distribution is, and how far two lie apart. Natural logarithms: all in nats. Pure
// functions over supports, O(size), with the same bits on every machine; thread-safe.
#ifndef OUTRIDER_SAMPLING_DIVERGENCE_H_
#define OUTRIDER_SAMPLING_DIVERGENCE_H_

#include <cstddef>

#include "sampling/distribution.h"

namespace outrider {

// Calls visit(id, prob in a, prob in b) for every id in either support, ids ascending.
template <class Visit>
void for_each_in_either(const Distribution& a, const Distribution& b, Visit&& visit) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.ids.size() || j < b.ids.size()) {
    if (j == b.ids.size() || (i < a.ids.size() && a.ids[i] < b.ids[j])) {
      visit(a.ids[i], a.probs[i], 0.0);
      ++i;
    } else if (i == a.ids.size() || b.ids[j] < a.ids[i]) {
      visit(b.ids[j], 0.0, b.probs[j]);
      ++j;
    } else {
      visit(a.ids[i], a.probs[i], b.probs[j]);
      ++i;
      ++j;
    }
  }
}

// The largest probability; 0 of an empty support.
double largest_prob(const Distribution& distribution);

double entropy(const Distribution& distribution);

// Half the sum of |a - b|, from 0 to 1.
double total_variation(const Distribution& a, const Distribution& b);

// sum of a log(a / b), at least 0; infinite where a gives something to a token that b does not.
double kl_divergence(const Distribution& a, const Distribution& b);

// The mean of both divergences from the middle of the two: from 0 to log 2, never infinite.
double jensen_shannon(const Distribution& a, const Distribution& b);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_DIVERGENCE_H_
