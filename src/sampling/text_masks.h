// SPDX-License-Identifier: Apache-2.0
// The results of a program's mask (outrider/token_mask.h) for one text and its drafts.
#ifndef OUTRIDER_SAMPLING_TEXT_MASKS_H_
#define OUTRIDER_SAMPLING_TEXT_MASKS_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "outrider/token_mask.h"
#include "outrider/types.h"

namespace outrider {

// Calls the mask once for each position and caches its answers, at most the last kMaxKept, until
// settle() says that the text continued without them. After a token that was not allowed nothing is
// allowed, without a call. An exception from the mask is kept: from then on all tokens are allowed,
// and the mask is not called any more. Not thread-safe.
class TextMasks {
 public:
  static constexpr std::size_t kMaxKept = 512;  // a round has at most 256 positions

  TextMasks(TokenMask mask, std::span<const TokenId> prompt, int vocabulary_size);

  // A bit for each id (word id / 64, bit id % 64) that may follow the prompt, `generated` and
  // `path`; empty: all may. Valid until the next call.
  std::optional<std::span<const std::uint64_t>> allowed(std::span<const TokenId> generated,
                                                        std::span<const TokenId> path);
  bool is_allowed(std::span<const TokenId> generated, std::span<const TokenId> path, TokenId token);

  // Reports the generated tokens that are committed.
  void settle(std::span<const TokenId> generated);

  // The exception of the mask; null: none.
  const std::exception_ptr& failure() const { return failure_; }

 private:
  struct Place {
    std::vector<TokenId> behind;       // tokens after the settled ones
    bool all = false;                  // all may follow
    std::vector<std::uint64_t> words;  // (n_words_), otherwise
  };

  const Place* find(std::span<const TokenId> behind) const;
  const Place& place_behind(std::span<const TokenId> behind);
  Place& next_place();
  void ask(Place& place);

  TokenMask mask_;
  std::size_t n_prompt_;
  std::size_t vocabulary_size_;
  std::vector<TokenId> settled_;  // prompt and generated tokens
  std::vector<Place> places_;     // the first n_places_ are in use
  std::size_t n_places_ = 0;
  std::size_t next_ = 0;  // to be overwritten if all are in use
  Place elsewhere_;       // for a text that does not continue the settled one: not cached
  std::exception_ptr failure_;

  // Reused from position to position.
  std::vector<TokenId> behind_;
  std::vector<TokenId> tokens_;
  std::vector<std::uint32_t> bits_;
};

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_TEXT_MASKS_H_
