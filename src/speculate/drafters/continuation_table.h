// What followed strings of a fixed number of tokens, in a table of bounded size.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_CONTINUATION_TABLE_H_
#define OUTRIDER_SPECULATE_DRAFTERS_CONTINUATION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "outrider/types.h"

namespace outrider {

// A string is known by a hash of 64 bits. Its high bits choose its place, where a later string that
// falls on it takes the place of an earlier one; the low 32 are kept there, so that another string
// of the same place is told apart but for one time in four thousand million. Eight bytes a place,
// all there from the start. Not thread-safe.
class ContinuationTable {
 public:
  // length >= 1: of the strings. n_places >= 1.
  ContinuationTable(int length, int n_places)
      : length_(static_cast<std::size_t>(length)), places_(static_cast<std::size_t>(n_places)) {}

  // What follows each string of a text, its last occurrence counting.
  void add(std::span<const TokenId> text);

  // What followed the last tokens of a text; kNoToken: nothing is known, or the text is too short.
  TokenId after(std::span<const TokenId> text) const;

  // Places that are taken.
  int n_known() const { return n_known_; }

 private:
  struct Place {
    std::uint32_t check = 0;
    TokenId next = kNoToken;  // none: the place is free
  };
  std::size_t place_of(std::uint64_t hash) const;

  std::size_t length_;
  std::vector<Place> places_;
  int n_known_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_CONTINUATION_TABLE_H_
