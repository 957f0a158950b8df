// SPDX-License-Identifier: Apache-2.0
// Numbers within bounds, and multiples of a number, as parts of a grammar.
#ifndef OUTRIDER_GRAMMAR_SCHEMA_NUMBER_RANGE_H_
#define OUTRIDER_GRAMMAR_SCHEMA_NUMBER_RANGE_H_

#include <optional>
#include <string>
#include <string_view>

#include "grammar/parts.h"

namespace outrider {

// A decimal number, exactly.
struct Decimal {
  bool negative = false;  // false for zero
  std::string whole;      // digits before the point, at least one, no leading zeros
  std::string fraction;   // digits after it, no trailing zeros

  // Reads the text of a JSON number.
  static Decimal read(std::string_view number);
  bool is_zero() const { return whole == "0" && fraction.empty(); }
};
// Below 0, 0, or above 0.
int compare(const Decimal& a, const Decimal& b);

struct NumberBound {
  Decimal value;
  bool is_left_out = false;  // the bound itself is excluded
};
struct NumberForm {
  std::optional<NumberBound> min = {};
  std::optional<NumberBound> max = {};
  std::optional<Decimal> multiple_of = {};  // above zero
  bool whole = false;                       // integers only
};

// Numbers of the form, without exponents: integers of at most 18 digits, or numbers of at most 15
// digits in all. Doubles distinguish these, so they satisfy the bounds as doubles, too. Zero has no
// sign. Empty if the multiples would take too many parts.
std::optional<int> numbers_of(const NumberForm& form, GrammarParts& parts);

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_SCHEMA_NUMBER_RANGE_H_
