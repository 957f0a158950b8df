// What the tokens of two vocabularies mean to each other.
#ifndef OUTRIDER_BASE_VOCABULARY_TRANSLATION_H_
#define OUTRIDER_BASE_VOCABULARY_TRANSLATION_H_

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "outrider/types.h"

namespace outrider {

// From a target's vocabulary to a drafter's and back. Tokens of equal bytes are shared, one of the
// target's with one of the drafter's; the ends of a text are shared as ends.
struct VocabularyTranslation {
  // (target's rows) What the drafter reads for each token: the one it shares, or tokens that spell
  // it; never empty.
  std::vector<std::vector<TokenId>> spelled;
  // (drafter's rows) The token of the target's that each shares, or kNoToken.
  std::vector<TokenId> shared;
  // A stretch of a text as the drafter's own tokenizer would cut it, where that can be had (else
  // nothing): better reading than token by token. at_start: it begins the text. May be empty (no
  // function).
  std::function<std::vector<TokenId>(std::span<const TokenId> tokens, bool at_start)> read = {};
  // (target's rows) Tokens that begin with a blank: before them a text may be cut in two with
  // little harm. May be empty: none are known.
  std::vector<bool> begins_word = {};

  // Token by token, each as it is spelled. Tokens are rows of the target's.
  std::vector<TokenId> spell(std::span<const TokenId> tokens) const;
  // As read() has it, unless that is longer than the spelling by more than the one token that may
  // begin a text.
  std::vector<TokenId> read_text(std::span<const TokenId> tokens, bool at_start) const;
  // No way of reading makes more of the tokens than this.
  int most_read(std::span<const TokenId> tokens, bool at_start) const;
};

// A growing text in the drafter's tokens, as the drafter's tokenizer cuts it: what the last words
// are made of may change as the text goes on. Words long past are settled and not cut again, and
// neither is what goes on for hundreds of tokens without a blank: so a step costs the same
// everywhere in a text.
class TranslatedText {
 public:
  // The text is now `tokens` of the target's, which begin with those of the last time up to where
  // a truncate() has cut them. Valid until the next call.
  const std::vector<TokenId>& update(const VocabularyTranslation& translation,
                                     std::span<const TokenId> tokens);
  // What update() would give for these tokens is no longer than this.
  int most(const VocabularyTranslation& translation, std::span<const TokenId> tokens) const;
  // The text ends behind n_tokens of the target's, before it goes on otherwise.
  void truncate(std::size_t n_tokens);

 private:
  std::vector<TokenId> read_;
  void settle(const VocabularyTranslation& translation, std::span<const TokenId> tail);

  // What stands before these is settled.
  std::size_t settled_tokens_ = 0;
  std::size_t settled_read_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_BASE_VOCABULARY_TRANSLATION_H_
