// What a program's mask (outrider/token_mask.h) says of one text and of the drafts behind it.
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

// Asks the mask once for each place and remembers its answers, until settle() says that the text
// went on without them; of many the last kMostKept. Behind a token that was not allowed nothing is,
// without asking. What the mask throws is kept: from then on all tokens are allowed, and nothing is
// asked any more. Not thread-safe.
class TextMasks {
 public:
  static constexpr std::size_t kMostKept = 512;  // a round has 256 places at most

  TextMasks(TokenMask mask, std::span<const TokenId> prompt, int vocabulary_size);

  // A bit for each id (word id / 64, bit id % 64) that may follow the prompt, `generated` and
  // `path`; nothing: all may. Valid until the next call.
  std::optional<std::span<const std::uint64_t>> allowed(std::span<const TokenId> generated,
                                                        std::span<const TokenId> path);
  bool is_allowed(std::span<const TokenId> generated, std::span<const TokenId> path, TokenId token);

  // Tokens generated so far that stand.
  void settle(std::span<const TokenId> generated);

  // What the mask has thrown; null: nothing.
  const std::exception_ptr& failure() const { return failure_; }

 private:
  struct Place {
    std::vector<TokenId> behind;       // tokens from the settled ones on
    bool all = false;                  // may follow
    std::vector<std::uint64_t> words;  // (n_words_), else
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
  std::size_t next_ = 0;  // to be overwritten where all are in use
  Place elsewhere_;       // of another text than the settled one: not remembered
  std::exception_ptr failure_;

  // Reused from place to place.
  std::vector<TokenId> behind_;
  std::vector<TokenId> tokens_;
  std::vector<std::uint32_t> bits_;
};

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_TEXT_MASKS_H_
