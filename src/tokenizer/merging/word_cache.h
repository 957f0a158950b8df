// SPDX-License-Identifier: Apache-2.0
// Caches the tokens of short words. Most words of a text occur again and again, and a look-up takes
// a fraction of the time of merging. Of bounded size; a new word replaces the older one at its
// place. Not thread-safe.
#ifndef OUTRIDER_TOKENIZER_MERGING_WORD_CACHE_H_
#define OUTRIDER_TOKENIZER_MERGING_WORD_CACHE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/types.h"

namespace outrider {

class WordCache {
 public:
  static constexpr std::size_t kMaxBytes = 16;  // of a word: two registers
  static constexpr std::size_t kMaxTokens = 3;  // so that a place is half a cache line

  // A word's bytes, in halves that overlap for short words.
  struct Key {
    std::uint64_t low, high;
    std::uint16_t n_bytes;
  };
  // `word`: 1 to kMaxBytes bytes.
  static Key key_of(std::string_view word) {
    Key key{0, 0, static_cast<std::uint16_t>(word.size())};
    const char* const end = word.data() + word.size();
    if (word.size() >= 8) {
      std::memcpy(&key.low, word.data(), 8);
      std::memcpy(&key.high, end - 8, 8);
    } else if (word.size() >= 4) {
      std::memcpy(&key.low, word.data(), 4);
      std::memcpy(&key.high, end - 4, 4);
    } else {
      const auto byte = [&](std::size_t i) {
        return std::uint64_t{static_cast<unsigned char>(word[i])};
      };
      key.low = byte(0) | byte(word.size() / 2) << 8 | byte(word.size() - 1) << 16;
    }
    return key;
  }

  // Appends the word's tokens; false if they are not cached.
  bool find(const Key& key, std::vector<TokenId>& out) const {
    if (places_.empty()) return false;
    const Place* place = &places_[first_place(key)];
    if (!place->is_of(key) && !(++place)->is_of(key)) return false;
    for (std::size_t i = 0; i < place->n_ids; ++i) out.push_back(place->ids[i]);
    return true;
  }
  // `ids`: at most kMaxTokens.
  void put(const Key& key, std::span<const TokenId> ids) {
    if (n_put_ >= places_.size()) grow();
    ++n_put_;
    Place place{key, {}, static_cast<std::uint16_t>(ids.size())};
    std::copy(ids.begin(), ids.end(), place.ids.begin());
    put(place);
  }

 private:
  // A short text needs only a small table, which is fast to create. The largest (512 KiB) holds the
  // words that make up nearly all of any text, and fits the L2 cache.
  static constexpr std::size_t kFewest = 128;
  static constexpr std::size_t kMax = 16384;

  struct Place {
    Place() : Place({0, 0, 0}, {}, 0) {}
    Place(const Key& key, const std::array<TokenId, kMaxTokens>& tokens, std::uint16_t n_tokens)
        : low(key.low), high(key.high), ids(tokens), n_bytes(key.n_bytes), n_ids(n_tokens) {}
    bool is_of(const Key& key) const {
      return low == key.low && high == key.high && n_bytes == key.n_bytes;
    }
    std::uint64_t low, high;
    std::array<TokenId, kMaxTokens> ids;
    std::uint16_t n_bytes;  // 0: the place is free
    std::uint16_t n_ids;
  };
  static_assert(sizeof(Place) == 32);

  // Places are in pairs; a word may be in either.
  std::size_t first_place(const Key& key) const {
    // As in IntegerMap. The high half of words of up to three bytes is empty.
    std::uint64_t hash = (key.low + key.n_bytes) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 32 ^ key.high) * 0x9E3779B97F4A7C15u;
    return (hash >> 32) & (places_.size() - 2);
  }
  void put(const Place& place) {
    Place* const two = &places_[first_place({place.low, place.high, place.n_bytes})];
    two[1] = two[0];
    two[0] = place;
  }
  void grow() {
    if (places_.size() == kMax) return;
    const std::size_t n_places = std::clamp(4 * places_.size(), kFewest, kMax);
    const std::vector<Place> old = std::exchange(places_, std::vector<Place>(n_places));
    n_put_ = 0;
    for (const Place& place : old) {
      if (place.n_bytes > 0) put(place);
    }
  }

  std::vector<Place> places_;
  std::size_t n_put_ = 0;  // since the table last grew
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_MERGING_WORD_CACHE_H_
