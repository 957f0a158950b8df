// Numbers between bounds, and multiples of a number, as parts of a grammar.
#ifndef OUTRIDER_GRAMMAR_NUMBER_RANGE_H_
#define OUTRIDER_GRAMMAR_NUMBER_RANGE_H_

#include <optional>
#include <string>
#include <string_view>

#include "grammar/parts.h"

namespace outrider {

// A decimal number, exactly.
struct Decimal {
  bool negative = false;  // zero is not
  std::string whole;      // digits before the point, at least one, no leading zeros
  std::string fraction;   // digits behind it, no trailing zeros

  // Of a JSON number's text.
  static Decimal read(std::string_view number);
  bool is_zero() const { return whole == "0" && fraction.empty(); }
};
// Below 0, 0, or above.
int compare(const Decimal& a, const Decimal& b);

struct NumberBound {
  Decimal value;
  bool is_left_out = false;  // the number itself
};
struct NumberForm {
  std::optional<NumberBound> least = {};
  std::optional<NumberBound> most = {};
  std::optional<Decimal> multiple_of = {};  // above zero
  bool whole = false;                       // integers alone
};

// Numbers of the form, without exponents: integers of at most 18 digits, or numbers of at most 15
// digits altogether, which doubles tell apart, so that they are between the bounds as doubles, too.
// Zero has no sign. Null where the multiples would take too many parts.
std::optional<int> numbers_of(const NumberForm& form, GrammarParts& parts);

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_NUMBER_RANGE_H_
