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
      !text.empty() && static_cast<int>(text.size()) <= most_read(tokens, at_start);
  return is_sound ? text : spell(tokens);
}

int VocabularyTranslation::most_read(std::span<const TokenId> tokens, bool at_start) const {
  std::size_t n = at_start ? 1 : 0;
  for (const TokenId token : tokens) n += spelled[static_cast<std::size_t>(token)].size();
  return static_cast<int>(n);
}

namespace {

// Tokens that are cut anew each time; a word has far fewer, and a few dozen cost microseconds.
constexpr std::size_t kUnsettled = 32;

}  // namespace

const std::vector<TokenId>& TranslatedText::update(const VocabularyTranslation& translation,
                                                   std::span<const TokenId> tokens) {
  const std::span<const TokenId> tail = tokens.subspan(settled_tokens_);
  const std::vector<TokenId> text = translation.read_text(tail, settled_tokens_ == 0);
  read_.resize(settled_read_);
  read_.insert(read_.end(), text.begin(), text.end());
  if (!translation.read || tail.size() < 2 * kUnsettled) return read_;
  // Settle what stands before a word if it is cut in the same way with and without what follows.
  for (std::size_t n = tail.size() - kUnsettled; n > 0; --n) {
    const std::vector<TokenId> rest = translation.read(tail.subspan(n), false);
    if (rest.empty()) continue;  // within a word
    const std::vector<TokenId> head = translation.read_text(tail.first(n), settled_tokens_ == 0);
    if (head.size() + rest.size() == text.size() &&
        std::equal(head.begin(), head.end(), text.begin())) {
      settled_tokens_ += n;
      settled_read_ += head.size();
    }
    break;
  }
  return read_;
}

int TranslatedText::most(const VocabularyTranslation& translation,
                         std::span<const TokenId> tokens) const {
  const std::size_t settled = std::min(settled_tokens_, tokens.size());
  return static_cast<int>(settled_read_) +
         translation.most_read(tokens.subspan(settled), settled_tokens_ == 0);
}

void TranslatedText::truncate(std::size_t n_tokens) {
  if (n_tokens >= settled_tokens_) return;
  settled_tokens_ = 0;
  settled_read_ = 0;
}

}  // namespace outrider
