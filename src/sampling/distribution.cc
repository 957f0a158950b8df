#include "sampling/distribution.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/lane_sum.h"

namespace outrider {
namespace {

// Calls visit(i, what is left of weight * from[i] after `taken` took its share) for every i of two
// supports that are not the same range.
template <class Visit>
void for_each_remainder(const Distribution& from, const Distribution& taken, double weight,
                        const Visit& visit) {
  std::size_t j = 0;
  for (std::size_t i = 0; i < from.ids.size(); ++i) {
    const TokenId id = from.ids[i];
    while (j < taken.ids.size() && taken.ids[j] < id) ++j;
    const bool shared = j < taken.ids.size() && taken.ids[j] == id;
    visit(i, std::max(0.0, weight * from.probs[i] - (shared ? taken.probs[j] : 0.0)));
  }
}

bool same_range(const Distribution& a, const Distribution& b) {
  return a.ids.size() == b.ids.size() && a.covers_range() && b.covers_range();
}

}  // namespace

Distribution Distribution::dense(std::span<const double> probs) {
  Distribution result;
  result.ids.resize(probs.size());
  std::iota(result.ids.begin(), result.ids.end(), TokenId{0});
  result.probs.assign(probs.begin(), probs.end());
  return result;
}

double Distribution::searched_prob(TokenId id) const {
  const auto found = std::lower_bound(ids.begin(), ids.end(), id);
  return found != ids.end() && *found == id ? probs[static_cast<std::size_t>(found - ids.begin())]
                                            : 0.0;
}

void Distribution::reserve(std::size_t n) {
  ids.reserve(n);
  probs.reserve(n);
}

void Distribution::become(const Distribution& other) {
  reserve(std::max(other.ids.capacity(), other.probs.capacity()));
  ids = other.ids;
  probs = other.probs;
}

TokenId Distribution::argmax() const {
  // max_element gives the first of equals, and the ids ascend.
  return ids[static_cast<std::size_t>(std::max_element(probs.begin(), probs.end()) -
                                      probs.begin())];
}

double overlap(const Distribution& a, const Distribution& b) {
  double sum = 0;
  for_each_in_either(a, b, [&](TokenId, double in_a, double in_b) { sum += std::min(in_a, in_b); });
  return sum;
}

double remainder_mass(const Distribution& from, const Distribution& taken, double weight) {
  LaneSum mass;
  if (same_range(from, taken)) {
    mass.add_each(from.probs.size(), [&, weight](std::size_t i) {
      return std::max(0.0, weight * from.probs[i] - taken.probs[i]);
    });
  } else {
    for_each_remainder(from, taken, weight, [&](std::size_t i, double left) {
      mass.add(static_cast<std::size_t>(from.ids[i]), left);
    });
  }
  return mass.total();
}

double subtract_and_normalise(Distribution& from, const Distribution& taken, double weight) {
  const double mass = remainder_mass(from, taken, weight);
  if (!(mass > 0)) return 0;  // nothing may change
  std::size_t n_kept = 0;
  // What is kept moves to the front, where the walk has been.
  const auto keep = [&](std::size_t i, double left) {
    const double prob = left / mass;
    from.ids[n_kept] = from.ids[i];
    from.probs[n_kept] = prob;
    n_kept += prob > 0 ? 1 : 0;
  };
  if (same_range(from, taken)) {
    for (std::size_t i = 0, n = from.ids.size(); i < n; ++i) {
      keep(i, std::max(0.0, weight * from.probs[i] - taken.probs[i]));
    }
  } else {
    for_each_remainder(from, taken, weight, keep);
  }
  from.ids.resize(n_kept);
  from.probs.resize(n_kept);
  return mass;
}

}  // namespace outrider
