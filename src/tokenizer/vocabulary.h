// The tokens: spelling <-> id, and what kind each is. Immutable once built, thread-safe.
#ifndef OUTRIDER_TOKENIZER_VOCABULARY_H_
#define OUTRIDER_TOKENIZER_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "outrider/types.h"

namespace outrider {

struct TokenEntry {
  std::string piece;
  bool present = false;   // false: the vocabulary has a hole here
  bool in_model = false;  // one of the merging model's own pieces (added tokens may be, too)
  bool special = false;
};

class Vocabulary {
 public:
  Vocabulary() = default;
  // `entries` (n_tokens) by id. Throws Error, naming `object`, if two have the same piece.
  Vocabulary(std::vector<TokenEntry> entries, std::string_view object);
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  int size() const { return static_cast<int>(entries_.size()); }
  bool has(TokenId id) const {
    return id >= 0 && id < size() && entries_[static_cast<std::size_t>(id)].present;
  }
  const TokenEntry& operator[](TokenId id) const { return entries_[static_cast<std::size_t>(id)]; }
  TokenId find(std::string_view piece) const;           // kNoToken if there is none
  TokenId find_in_model(std::string_view piece) const;  // the same among the model's own pieces

 private:
  std::vector<TokenEntry> entries_;
  std::unordered_map<std::string_view, TokenId> ids_;  // keys are views into entries_
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_VOCABULARY_H_
