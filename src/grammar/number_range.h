// Numbers between bounds, as parts of a grammar.
#ifndef OUTRIDER_GRAMMAR_NUMBER_RANGE_H_
#define OUTRIDER_GRAMMAR_NUMBER_RANGE_H_

#include <cstdint>
#include <optional>

#include "grammar/parts.h"

namespace outrider {

// The largest integer that is written: of 18 digits.
inline constexpr std::int64_t kLargestInteger = 999'999'999'999'999'999;

struct NumberBounds {
  std::optional<std::int64_t> least = {};
  std::optional<std::int64_t> most = {};
  bool above_least = false;  // not `least` itself; of numbers alone
  bool below_most = false;   // likewise
};

// Integers from `least` to `most`, both included, without leading zeros. Bounds beyond
// kLargestInteger are drawn in.
int integers_between(const NumberBounds& bounds, GrammarParts& parts);
// Decimal numbers of at most 16 digits behind the point, without exponents.
int numbers_between(const NumberBounds& bounds, GrammarParts& parts);

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_NUMBER_RANGE_H_
