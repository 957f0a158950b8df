// SPDX-License-Identifier: Apache-2.0
#include "sampling/text_masks.h"

#include <algorithm>
#include <utility>

namespace outrider {

TextMasks::TextMasks(TokenMask mask, std::span<const TokenId> prompt, int vocabulary_size)
    : mask_(std::move(mask)),
      n_prompt_(prompt.size()),
      vocabulary_size_(static_cast<std::size_t>(vocabulary_size)),
      settled_(prompt.begin(), prompt.end()),
      bits_((vocabulary_size_ + 31) / 32) {}

namespace {

bool holds(std::span<const std::uint64_t> words, TokenId token) {
  const auto id = static_cast<std::size_t>(token);
  return id / 64 < words.size() && ((words[id / 64] >> (id % 64)) & 1) != 0;
}

}  // namespace

std::optional<std::span<const std::uint64_t>> TextMasks::allowed(std::span<const TokenId> generated,
                                                                 std::span<const TokenId> path) {
  if (failure_) return std::nullopt;
  const std::span<const TokenId> settled = std::span<const TokenId>(settled_).subspan(n_prompt_);
  const bool goes_on = generated.size() >= settled.size() &&
                       std::equal(settled.begin(), settled.end(), generated.begin());
  const Place* place = &elsewhere_;
  if (goes_on) {
    const std::span<const TokenId> rest = generated.subspan(settled.size());
    behind_.assign(rest.begin(), rest.end());
    behind_.insert(behind_.end(), path.begin(), path.end());
    place = &place_behind(behind_);
  } else {
    tokens_.assign(settled_.begin(), settled_.begin() + static_cast<std::ptrdiff_t>(n_prompt_));
    tokens_.insert(tokens_.end(), generated.begin(), generated.end());
    tokens_.insert(tokens_.end(), path.begin(), path.end());
    ask(elsewhere_);
  }
  if (failure_ || place->all) return std::nullopt;
  return place->words;
}

const TextMasks::Place& TextMasks::place_behind(std::span<const TokenId> behind) {
  if (const Place* const known = find(behind)) return *known;
  bool is_reached = true;
  if (!behind.empty()) {
    const Place& before = place_behind(behind.first(behind.size() - 1));
    is_reached = before.all || holds(before.words, behind.back());
  }
  Place& place = next_place();
  place.behind.assign(behind.begin(), behind.end());
  if (is_reached) {
    tokens_ = settled_;
    tokens_.insert(tokens_.end(), behind.begin(), behind.end());
    ask(place);
  } else {
    place.all = false;
    place.words.assign((vocabulary_size_ + 63) / 64, 0);
  }
  return place;
}

bool TextMasks::is_allowed(std::span<const TokenId> generated, std::span<const TokenId> path,
                           TokenId token) {
  const auto words = allowed(generated, path);
  return !words || holds(*words, token);
}

// Keeps places that continue the newly settled tokens, and stores them relative to these.
void TextMasks::settle(std::span<const TokenId> generated) {
  const std::span<const TokenId> more = generated.subspan(settled_.size() - n_prompt_);
  if (more.empty()) return;
  settled_.insert(settled_.end(), more.begin(), more.end());
  std::size_t n_kept = 0;
  for (std::size_t i = 0; i < n_places_; ++i) {
    std::vector<TokenId>& behind = places_[i].behind;
    if (behind.size() < more.size() || !std::equal(more.begin(), more.end(), behind.begin())) {
      continue;
    }
    behind.erase(behind.begin(), behind.begin() + static_cast<std::ptrdiff_t>(more.size()));
    if (n_kept != i) std::swap(places_[n_kept], places_[i]);
    ++n_kept;
  }
  n_places_ = n_kept;
  next_ = 0;
}

const TextMasks::Place* TextMasks::find(std::span<const TokenId> behind) const {
  const auto end = places_.begin() + static_cast<std::ptrdiff_t>(n_places_);
  const auto at = std::find_if(places_.begin(), end, [behind](const Place& place) {
    return std::equal(place.behind.begin(), place.behind.end(), behind.begin(), behind.end());
  });
  return at == end ? nullptr : &*at;
}

TextMasks::Place& TextMasks::next_place() {
  if (n_places_ == kMaxKept) return places_[next_++ % kMaxKept];
  if (n_places_ == places_.size()) places_.emplace_back();
  return places_[n_places_++];
}

// Asks for the mask after tokens_.
void TextMasks::ask(Place& place) {
  if (failure_) return;
  std::fill(bits_.begin(), bits_.end(), 0);
  try {
    place.all = !mask_({.tokens = tokens_,
                        .n_prompt = n_prompt_,
                        .n_committed = std::min(settled_.size(), tokens_.size())},
                       bits_);
  } catch (...) {
    failure_ = std::current_exception();
    return;
  }
  if (place.all) return;
  place.words.assign((vocabulary_size_ + 63) / 64, 0);
  for (std::size_t i = 0; i < bits_.size(); ++i) {
    place.words[i / 2] |= std::uint64_t{bits_[i]} << (32 * (i % 2));
  }
  // Bits beyond the last id are undefined.
  if (vocabulary_size_ % 64 != 0) {
    place.words.back() &= (std::uint64_t{1} << (vocabulary_size_ % 64)) - 1;
  }
}

}  // namespace outrider
