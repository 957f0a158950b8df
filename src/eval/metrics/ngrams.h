// SPDX-License-Identifier: Apache-2.0
// Counted n-grams of a sequence.
#ifndef OUTRIDER_EVAL_METRICS_NGRAMS_H_
#define OUTRIDER_EVAL_METRICS_NGRAMS_H_

#include <algorithm>
#include <map>
#include <vector>

namespace outrider::eval {

// The number of occurrences of each run of n elements in `sequence`. Keys are the runs themselves:
// a text as a container of characters, or a vector of words.
template <typename Sequence>
std::map<Sequence, int> ngrams(const Sequence& sequence, int n) {
  std::map<Sequence, int> counts;
  for (auto first = sequence.begin(); sequence.end() - first >= n; ++first) {
    ++counts[Sequence(first, first + n)];
  }
  return counts;
}

// The number of common n-grams: for each, the smaller of the two counts.
template <typename Sequence>
int n_common(const std::map<Sequence, int>& one, const std::map<Sequence, int>& other) {
  int n = 0;
  for (const auto& entry : one) {
    const auto found = other.find(entry.first);
    if (found != other.end()) n += std::min(entry.second, found->second);
  }
  return n;
}

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_METRICS_NGRAMS_H_
