#include "sampling/distribution.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace outrider {
namespace {

// Is the support 0..n-1? The ids ascend strictly from 0 on, so the last one tells.
bool covers_its_range(const Distribution& distribution) {
  return !distribution.ids.empty() && distribution.ids.front() == 0 &&
         static_cast<std::size_t>(distribution.ids.back()) == distribution.ids.size() - 1;
}

// What is left of from[i] after `taken` took its share; j walks taken's support along with i.
double remainder_at(const Distribution& from, std::size_t i, const Distribution& taken,
                    std::size_t& j) {
  const TokenId id = from.ids[i];
  while (j < taken.ids.size() && taken.ids[j] < id) ++j;
  const bool shared = j < taken.ids.size() && taken.ids[j] == id;
  return std::max(0.0, shared ? from.probs[i] - taken.probs[j] : from.probs[i]);
}

}  // namespace

Distribution Distribution::dense(std::span<const double> probs) {
  Distribution result;
  result.ids.resize(probs.size());
  std::iota(result.ids.begin(), result.ids.end(), TokenId{0});
  result.probs.assign(probs.begin(), probs.end());
  return result;
}

double Distribution::prob(TokenId id) const {
  if (covers_its_range(*this)) {
    return id >= 0 && id <= ids.back() ? probs[static_cast<std::size_t>(id)] : 0.0;
  }
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
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.ids.size() && j < b.ids.size()) {
    if (a.ids[i] < b.ids[j]) {
      ++i;
    } else if (b.ids[j] < a.ids[i]) {
      ++j;
    } else {
      sum += std::min(a.probs[i++], b.probs[j++]);
    }
  }
  return sum;
}

double subtract_and_normalise(Distribution& from, const Distribution& taken) {
  // Twice the same walk: the first finds the mass, for nothing may change if there is none.
  double mass = 0;
  for (std::size_t i = 0, j = 0; i < from.ids.size(); ++i) mass += remainder_at(from, i, taken, j);
  if (!(mass > 0)) return 0;
  std::size_t n_kept = 0;
  for (std::size_t i = 0, j = 0; i < from.ids.size(); ++i) {
    const double left = remainder_at(from, i, taken, j) / mass;
    if (left > 0) {
      from.ids[n_kept] = from.ids[i];
      from.probs[n_kept++] = left;
    }
  }
  from.ids.resize(n_kept);
  from.probs.resize(n_kept);
  return mass;
}

}  // namespace outrider
