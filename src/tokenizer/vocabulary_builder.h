// SPDX-License-Identifier: Apache-2.0
// Builds a vocabulary token by token. Not thread-safe.
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

  // The first id that is too large for a vocabulary of n_tokens. Ids may have gaps, but a small
  // file must not require a huge table.
  static std::int64_t id_limit(std::int64_t n_tokens) {
    constexpr std::int64_t kHolesPerToken = 4;
    constexpr std::int64_t kFreeHoles = 65536;
    return n_tokens * kHolesPerToken + kFreeHoles;
  }

  // The entry of `id` (not negative) with the spelling `piece`: new or existing. Throws Error if
  // the id has another spelling.
  TokenEntry& add(TokenId id, std::string_view piece);
  // Finds a piece among those that were added before the first look-up.
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
