// SPDX-License-Identifier: Apache-2.0
// A set of small values for frequent clearing.
#ifndef OUTRIDER_GRAMMAR_FLAT_SET_H_
#define OUTRIDER_GRAMMAR_FLAT_SET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace outrider {

// T needs == and hash_of(T). clear() takes constant time. Not thread-safe.
template <typename T>
class FlatSet {
 public:
  void clear() {
    n_ = 0;
    if (++round_ != 0) return;
    for (Place& place : places_) place.round = 0;
    round_ = 1;
  }

  // Returns false if the value is already in the set.
  bool insert(const T& value) {
    if (2 * (n_ + 1) > places_.size()) grow();
    if (!put(value)) return false;
    ++n_;
    return true;
  }

 private:
  struct Place {
    T value;
    std::uint32_t round = 0;  // of its writing; in another round the place is free
  };

  bool put(const T& value) {
    const std::size_t mask = places_.size() - 1;
    std::uint64_t hash = hash_of(value);
    hash ^= hash >> 32;
    std::size_t at = hash & mask;
    for (; places_[at].round == round_; at = (at + 1) & mask) {
      if (places_[at].value == value) return false;
    }
    places_[at] = {value, round_};
    return true;
  }

  void grow() {
    std::vector<Place> before(std::max<std::size_t>(64, 2 * places_.size()), Place{});
    before.swap(places_);
    const std::uint32_t old_round = round_;
    for (const Place& place : before) {
      if (place.round == old_round) put(place.value);
    }
  }

  std::vector<Place> places_;  // a power of two, at least half of them free
  std::size_t n_ = 0;
  std::uint32_t round_ = 1;
};

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_FLAT_SET_H_
