// SPDX-License-Identifier: Apache-2.0
// The tokens of a vocabulary: spelling <-> id, and the kind of each. Immutable once built,
// thread-safe.
#ifndef OUTRIDER_TOKENIZER_VOCABULARY_H_
#define OUTRIDER_TOKENIZER_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/types.h"

namespace outrider {

struct TokenEntry {
  std::string piece;
  bool present = false;   // false: a gap in the vocabulary
  bool in_model = false;  // one of the merging model's own pieces (may also be an added token)
  bool special = false;
  bool added = false;  // found in the text before it is cut and merged
};

class Vocabulary {
 public:
  Vocabulary() : Vocabulary({}, "") {}
  // `entries` (n_tokens) by id. Throws Error, with `object`, if two have the same piece.
  Vocabulary(std::vector<TokenEntry> entries, std::string_view object);

  int size() const { return static_cast<int>(entries_.size()); }
  bool has(TokenId id) const {
    return id >= 0 && id < size() && entries_[static_cast<std::size_t>(id)].present;
  }
  const TokenEntry& operator[](TokenId id) const { return entries_[static_cast<std::size_t>(id)]; }
  TokenId find(std::string_view piece) const;           // kNoToken if there is none
  TokenId find_in_model(std::string_view piece) const;  // the same among the model's own pieces

 private:
  // A hash table with linear probing, at most half full. A slot keeps 32 bits of the hash, so that
  // looking up an unknown piece compares no text.
  struct Slot {
    std::uint32_t hash = 0;
    TokenId id = kNoToken;  // kNoToken: the slot is empty
  };
  // The slot of `piece`, or the empty one where the search ends.
  std::size_t find_slot(std::string_view piece, std::uint32_t hash) const;

  std::vector<TokenEntry> entries_;
  std::vector<Slot> slots_;  // a power of two
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_VOCABULARY_H_
