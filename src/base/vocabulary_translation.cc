#include "base/vocabulary_translation.h"

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

}  // namespace outrider
