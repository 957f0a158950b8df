// SPDX-License-Identifier: Apache-2.0
// Translation between the tokens of two vocabularies.
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
  // (target's rows) The drafter's tokens for each token: the shared one, or tokens that spell it;
  // never empty.
  std::vector<std::vector<TokenId>> spelled;
  // (drafter's rows) The target's token that each shares, or kNoToken.
  std::vector<TokenId> shared;
  // A stretch of a text as the drafter's own tokenizer splits it, if available (else empty); the
  // drafter reads this better than token by token. at_start: the stretch begins the text. May be an
  // empty function.
  std::function<std::vector<TokenId>(std::span<const TokenId> tokens, bool at_start)> read = {};
  // (target's rows) Tokens that begin with a blank: splitting a text before them changes little.
  // May be empty: unknown.
  std::vector<bool> begins_word = {};

  // Translates token by token. Tokens are rows of the target's.
  std::vector<TokenId> spell(std::span<const TokenId> tokens) const;
  // The result of read(), unless that is longer than the spelling by more than the one token that
  // may begin a text.
  std::vector<TokenId> read_text(std::span<const TokenId> tokens, bool at_start) const;
  // An upper bound on the length of either translation.
  int max_read(std::span<const TokenId> tokens, bool at_start) const;
};

// A growing text in the drafter's tokens, as the drafter's tokenizer splits it: the last words may
// change as the text grows. Words long past are settled and not split again, and so are hundreds of
// tokens without a blank. So a step costs the same everywhere in a text.
class TranslatedText {
 public:
  // Sets the text to `tokens` of the target's. They must begin with those of the last call, up to
  // where a truncate() has cut them. Valid until the next call.
  const std::vector<TokenId>& update(const VocabularyTranslation& translation,
                                     std::span<const TokenId> tokens);
  // An upper bound on the length of update()'s result for these tokens.
  int max_tokens(const VocabularyTranslation& translation, std::span<const TokenId> tokens) const;
  // Cuts the text after n_tokens of the target's, before it continues differently.
  void truncate(std::size_t n_tokens);

 private:
  std::vector<TokenId> read_;
  void settle(const VocabularyTranslation& translation, std::span<const TokenId> tail);

  // Everything before these is settled.
  std::size_t settled_tokens_ = 0;
  std::size_t settled_read_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_BASE_VOCABULARY_TRANSLATION_H_
