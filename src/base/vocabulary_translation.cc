// SPDX-License-Identifier: Apache-2.0
#include "base/vocabulary_translation.h"

#include <algorithm>
#include <cstddef>

namespace outrider {

std::vector<TokenId> VocabularyTranslation::spell(std::span<const TokenId> tokens) const {
  std::vector<TokenId> spelling;
  for (const TokenId token : tokens) {
    const std::vector<TokenId>& one = spelled[static_cast<std::size_t>(token)];
    spelling.insert(spelling.end(), one.begin(), one.end());
  }
  return spelling;
}

std::vector<TokenId> VocabularyTranslation::read_text(std::span<const TokenId> tokens,
                                                      bool at_start) const {
  std::vector<TokenId> text;
  if (read) text = read(tokens, at_start);
  const bool is_sound =
      !text.empty() && static_cast<int>(text.size()) <= max_read(tokens, at_start);
  return is_sound ? text : spell(tokens);
}

int VocabularyTranslation::max_read(std::span<const TokenId> tokens, bool at_start) const {
  std::size_t n = at_start ? 1 : 0;
  for (const TokenId token : tokens) n += spelled[static_cast<std::size_t>(token)].size();
  return static_cast<int>(n);
}

namespace {

// Tokens that are translated again each time. A word has far fewer, and a few dozen cost
// microseconds.
constexpr std::size_t kUnsettled = 32;
// If no word begins, or if a word is split differently with its continuation, the text is split
// here anyway: some tokens are then translated less well, once per kMaxUnsettled.
constexpr std::size_t kMaxUnsettled = 256;

}  // namespace

const std::vector<TokenId>& TranslatedText::update(const VocabularyTranslation& translation,
                                                   std::span<const TokenId> tokens) {
  const std::span<const TokenId> tail = tokens.subspan(settled_tokens_);
  const std::vector<TokenId> text = translation.read_text(tail, settled_tokens_ == 0);
  read_.resize(settled_read_);
  read_.insert(read_.end(), text.begin(), text.end());
  if (translation.read && tail.size() >= 2 * kUnsettled) settle(translation, tail);
  return read_;
}

// read_ holds the tail as one piece.
void TranslatedText::settle(const VocabularyTranslation& translation,
                            std::span<const TokenId> tail) {
  std::size_t n = tail.size() - kUnsettled;
  const auto begins_word = [&](std::size_t place) {
    const auto token = static_cast<std::size_t>(tail[place]);
    return token < translation.begins_word.size() && translation.begins_word[token];
  };
  while (n > 0 && !begins_word(n)) --n;
  const bool is_word = n > 0;
  if (!is_word) n = tail.size() - kUnsettled;
  if (!is_word && tail.size() < kMaxUnsettled) return;
  const std::vector<TokenId> head = translation.read_text(tail.first(n), settled_tokens_ == 0);
  const std::vector<TokenId> rest = translation.read_text(tail.subspan(n), false);
  const auto as_one = read_.begin() + static_cast<std::ptrdiff_t>(settled_read_);
  const bool is_same = head.size() + rest.size() == read_.size() - settled_read_ &&
                       std::equal(head.begin(), head.end(), as_one);
  if (!is_same && tail.size() < kMaxUnsettled) return;
  read_.resize(settled_read_);
  read_.insert(read_.end(), head.begin(), head.end());
  settled_tokens_ += n;
  settled_read_ += head.size();
  read_.insert(read_.end(), rest.begin(), rest.end());
}

int TranslatedText::max_tokens(const VocabularyTranslation& translation,
                               std::span<const TokenId> tokens) const {
  const std::size_t settled = std::min(settled_tokens_, tokens.size());
  return static_cast<int>(settled_read_) +
         translation.max_read(tokens.subspan(settled), settled_tokens_ == 0);
}

void TranslatedText::truncate(std::size_t n_tokens) {
  if (n_tokens >= settled_tokens_) return;
  settled_tokens_ = 0;
  settled_read_ = 0;
}

}  // namespace outrider
