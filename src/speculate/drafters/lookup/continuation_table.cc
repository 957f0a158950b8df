// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/lookup/continuation_table.h"

#include "base/mix_bits.h"

namespace outrider {
namespace {

std::uint64_t hash_of(std::span<const TokenId> tokens) {
  std::uint64_t hash = 0;
  for (const TokenId token : tokens) {
    hash = mix_bits(hash + static_cast<std::uint32_t>(token) + kMixIncrement);
  }
  return hash;
}

}  // namespace

std::size_t ContinuationTable::place_of(std::uint64_t hash) const {
  // The hash's high half as a fraction of all places.
  return static_cast<std::size_t>(((hash >> 32) * places_.size()) >> 32);
}

void ContinuationTable::add(std::span<const TokenId> text) {
  for (std::size_t end = length_; end < text.size(); ++end) {
    const std::uint64_t hash = hash_of(text.subspan(end - length_, length_));
    Place& place = places_[place_of(hash)];
    n_known_ += place.next == kNoToken ? 1 : 0;
    place = {.check = static_cast<std::uint32_t>(hash), .next = text[end]};
  }
}

TokenId ContinuationTable::after(std::span<const TokenId> text) const {
  if (text.size() < length_) return kNoToken;
  const std::uint64_t hash = hash_of(text.last(length_));
  const Place& place = places_[place_of(hash)];
  return place.check == static_cast<std::uint32_t>(hash) ? place.next : kNoToken;
}

}  // namespace outrider
