// A probability distribution over a vocabulary, stored by its support.
#ifndef OUTRIDER_SAMPLING_DISTRIBUTION_H_
#define OUTRIDER_SAMPLING_DISTRIBUTION_H_

#include <cstddef>
#include <span>
#include <vector>

#include "outrider/types.h"

namespace outrider {

// ids ascend strictly; probs[i] >= 0 belongs to ids[i]; tokens not listed have probability 0; the
// probs sum to 1 but for rounding. Greedy decoding and top-k leave a handful of entries where a
// dense vector would have the whole vocabulary; rules and residuals walk supports in step.
struct Distribution {
  std::vector<TokenId> ids;
  std::vector<double> probs;

  static Distribution point_mass(TokenId id) { return {{id}, {1.0}}; }
  static Distribution dense(std::span<const double> probs);  // ids 0..n-1

  // Probability of one token: O(log support), O(1) where the support is 0..n-1.
  double prob(TokenId id) const;
  // The likeliest token, the lowest id among equals. The support must not be empty.
  TokenId argmax() const;
  void clear() {
    ids.clear();
    probs.clear();
  }
  // Room for n tokens. Supports vary from row to row, and vectors that grew with them would
  // allocate again and again; of memory that is set aside and never written the system has given
  // none.
  void reserve(std::size_t n);
  // What the other is, with as much room.
  void become(const Distribution& other);
};

// sum over x of min(a[x], b[x]): the chance that one draft token from b is accepted for a.
double overlap(const Distribution& a, const Distribution& b);

// from <- normalise(max(0, from - taken)) in place, keeping only positive entries.
// Returns the mass before normalisation; if that is 0 (nothing left but rounding) `from` stays as
// it was.
double subtract_and_normalise(Distribution& from, const Distribution& taken);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_DISTRIBUTION_H_
