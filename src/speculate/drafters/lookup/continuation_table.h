// SPDX-License-Identifier: Apache-2.0
// A table of bounded size with the token that followed each string of a fixed number of tokens.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_CONTINUATION_TABLE_H_
#define OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_CONTINUATION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "outrider/types.h"

namespace outrider {

// A string is identified by a 64-bit hash. The high bits choose its place, where a later string
// replaces an earlier one. The low 32 bits are stored, so that another string at the same place is
// mistaken for it with probability 2^-32. Eight bytes a place, all allocated at the start. Not
// thread-safe.
class ContinuationTable {
 public:
  // length >= 1: tokens of a string. n_places >= 1.
  ContinuationTable(int length, int n_places)
      : length_(static_cast<std::size_t>(length)), places_(static_cast<std::size_t>(n_places)) {}

  // Stores what follows each string of a text; its last occurrence counts.
  void add(std::span<const TokenId> text);

  // What followed the last tokens of a text; kNoToken: unknown, or the text is too short.
  TokenId after(std::span<const TokenId> text) const;

  // Places in use.
  int n_known() const { return n_known_; }

 private:
  struct Place {
    std::uint32_t check = 0;
    TokenId next = kNoToken;  // kNoToken: the place is free
  };
  std::size_t place_of(std::uint64_t hash) const;

  std::size_t length_;
  std::vector<Place> places_;
  int n_known_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_CONTINUATION_TABLE_H_
