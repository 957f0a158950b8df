// Puts a vocabulary together, token by token. Not thread-safe.
#ifndef OUTRIDER_TOKENIZER_VOCABULARY_BUILDER_H_
#define OUTRIDER_TOKENIZER_VOCABULARY_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace outrider {

class VocabularyBuilder {
 public:
  explicit VocabularyBuilder(std::string place) : place_(std::move(place)) {}  // names it in errors

  // Ids may leave holes, but not so that a small file asks for a huge table: the first id that is
  // too large for a vocabulary of n_tokens.
  static std::int64_t id_limit(std::int64_t n_tokens) {
    constexpr std::int64_t kHolesPerToken = 4;
    constexpr std::int64_t kFreeHoles = 65536;
    return n_tokens * kHolesPerToken + kFreeHoles;
  }

  // The entry of `id` (not negative), which is spelled `piece`: a new one, or that which is there.
  // Throws Error if it is spelled otherwise.
  TokenEntry& add(TokenId id, std::string_view piece);
  // A piece among those that were added before the first look-up.
  std::optional<TokenId> find(std::string_view piece);
  // Throws Error if two tokens have the same spelling.
  Vocabulary build() { return Vocabulary(std::move(entries_), place_); }

 private:
  std::string place_;
  std::vector<TokenEntry> entries_;
  std::unordered_map<std::string, TokenId> ids_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_VOCABULARY_BUILDER_H_
