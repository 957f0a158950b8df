// SPDX-License-Identifier: Apache-2.0
// A probability distribution over a vocabulary, stored by its support.
#ifndef OUTRIDER_SAMPLING_DISTRIBUTION_H_
#define OUTRIDER_SAMPLING_DISTRIBUTION_H_

#include <cstddef>
#include <span>
#include <vector>

#include "outrider/types.h"

namespace outrider {

// ids ascend strictly; probs[i] >= 0 belongs to ids[i]; tokens that are not listed have probability
// 0; the probs sum to 1 up to rounding. Greedy decoding and top-k leave a few entries where a dense
// vector would have the whole vocabulary. Rules and residuals iterate over two supports together.
struct Distribution {
  std::vector<TokenId> ids;
  std::vector<double> probs;

  static Distribution point_mass(TokenId id) { return {{id}, {1.0}}; }
  static Distribution dense(std::span<const double> probs);  // ids 0..n-1

  // Whether the support is 0..n-1, as after softmax. Then probs[id] belongs to id.
  bool covers_range() const {
    // The ids ascend strictly, so the first and the last one suffice.
    return !ids.empty() && ids.front() == 0 &&
           static_cast<std::size_t>(ids.back()) == ids.size() - 1;
  }
  // Probability of one token: O(log support), O(1) if the support is 0..n-1.
  double prob(TokenId id) const {
    if (!covers_range()) return searched_prob(id);
    return id >= 0 && id <= ids.back() ? probs[static_cast<std::size_t>(id)] : 0.0;
  }
  // The likeliest token, the lowest id among equals. The support must not be empty.
  TokenId argmax() const;
  void clear() {
    ids.clear();
    probs.clear();
  }
  // Reserves memory for n tokens. Supports vary from row to row, and vectors that grew with them
  // would allocate again and again. Reserved memory that is never written costs nothing: the system
  // provides pages only when they are written.
  void reserve(std::size_t n);
  // Copies the other distribution, and reserves as much memory.
  void assign(const Distribution& other);

 private:
  double searched_prob(TokenId id) const;
};

// Calls visit(id, prob in a, prob in b) for every id in either support, ids ascending.
template <class Visit>
void for_each_in_either(const Distribution& a, const Distribution& b, Visit&& visit) {
  if (a.ids.size() == b.ids.size() && a.covers_range() && b.covers_range()) {
    for (std::size_t i = 0; i < a.ids.size(); ++i) {
      visit(static_cast<TokenId>(i), a.probs[i], b.probs[i]);
    }
    return;
  }
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

// out <- combined(id, prob in a, prob in b) for every id in either support; ids with 0 are left
// out. out must be neither a nor b.
template <class Combine>
void combine(const Distribution& a, const Distribution& b, const Combine& combined,
             Distribution& out) {
  const bool dense = a.ids.size() == b.ids.size() && a.covers_range() && b.covers_range();
  const std::size_t most = dense ? a.ids.size() : a.ids.size() + b.ids.size();
  out.ids.resize(most);
  out.probs.resize(most);
  // Branch-free: every entry is written and kept by counting, because the processor cannot predict
  // which ids get 0.
  std::size_t n = 0;
  for_each_in_either(a, b, [&](TokenId id, double in_a, double in_b) {
    const double prob = combined(id, in_a, in_b);
    out.ids[n] = id;
    out.probs[n] = prob;
    n += prob > 0 ? 1 : 0;
  });
  out.ids.resize(n);
  out.probs.resize(n);
}

// sum over x of min(a[x], b[x]): the probability that one draft token from b is accepted for a.
double overlap(const Distribution& a, const Distribution& b);

// sum over x of max(0, weight * from[x] - taken[x]).
double remainder_mass(const Distribution& from, const Distribution& taken, double weight = 1);

// from <- normalise(max(0, weight * from - taken)) in place, keeping only positive entries. Returns
// the mass before normalisation; if that is 0 (nothing left but rounding), `from` is unchanged.
double subtract_and_normalise(Distribution& from, const Distribution& taken, double weight = 1);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_DISTRIBUTION_H_
