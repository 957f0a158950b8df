// SPDX-License-Identifier: Apache-2.0
// Short lists of small values, each stored once and identified by a number.
#ifndef OUTRIDER_GRAMMAR_SPAN_TABLE_H_
#define OUTRIDER_GRAMMAR_SPAN_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace outrider {

constexpr std::uint64_t hash_of(std::int32_t value) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(value)) * 0xD6E8FEB86659FD93u;
}

// T needs == and hash_of(T). Numbers count from 0 in order of first appearance. Not thread-safe.
template <typename T>
class SpanTable {
 public:
  // The list's number; a new list is copied. Invalidates spans returned before.
  int intern(std::span<const T> list) {
    if (2 * (static_cast<std::size_t>(size()) + 1) > places_.size()) grow();
    std::int32_t& place = places_[place_of(list)];
    if (place < 0) {
      place = size();
      items_.insert(items_.end(), list.begin(), list.end());
      first_.push_back(items_.size());
    }
    return place;
  }

  std::span<const T> operator[](int index) const {
    const std::size_t first = first_[static_cast<std::size_t>(index)];
    return std::span(items_).subspan(first, first_[static_cast<std::size_t>(index) + 1] - first);
  }
  int size() const { return static_cast<int>(first_.size()) - 1; }
  std::size_t n_items() const { return items_.size(); }

 private:
  // Open addressing: the list's place, or the free one that it would get.
  std::size_t place_of(std::span<const T> list) const {
    std::uint64_t hash = list.size();
    for (const T& item : list) {
      hash = (hash ^ hash_of(item)) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    const std::size_t mask = places_.size() - 1;
    std::size_t place = hash & mask;
    while (places_[place] >= 0) {
      const std::span<const T> there = (*this)[places_[place]];
      if (std::equal(list.begin(), list.end(), there.begin(), there.end())) break;
      place = (place + 1) & mask;
    }
    return place;
  }

  void grow() {
    places_.assign(std::max<std::size_t>(64, 2 * places_.size()), -1);
    for (int i = 0; i < size(); ++i) places_[place_of((*this)[i])] = i;
  }

  std::vector<T> items_;
  std::vector<std::size_t> first_ = {0};
  std::vector<std::int32_t> places_;  // a power of two, at least half of them free
};

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_SPAN_TABLE_H_
