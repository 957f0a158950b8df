#include "grammar/number_range.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outrider {
namespace {

constexpr int kFractionDigits = 16;

class Ranges {
 public:
  explicit Ranges(GrammarParts& parts) : parts_(parts) {}

  // 0 <= least; none where most < least.
  int natural(std::int64_t least, std::int64_t most) {
    std::vector<int> choices;
    // Numbers of one length at a time.
    for (std::int64_t low = 1, high = 9; low <= kLargestInteger; low *= 10, high = high * 10 + 9) {
      const std::int64_t from = std::max(least, low == 1 ? std::int64_t{0} : low);
      const std::int64_t to = std::min(most, high);
      if (from <= to) choices.push_back(digits(std::to_string(from), std::to_string(to)));
      if (high == kLargestInteger) break;
    }
    return parts_.choice(std::move(choices));
  }

  // Of magnitude `whole` with a fraction: any, or none but zeros, or any but zeros.
  enum class Fraction { any, zero, some };
  int with_fraction(int whole, Fraction fraction) {
    const int digit = digit_between('0', '9');
    const int point = parts_.text(".");
    const int zeros = parts_.sequence({point, parts_.repeat(parts_.text("0"), 1, kFractionDigits)});
    if (fraction == Fraction::zero) return parts_.sequence({whole, parts_.optional(zeros)});
    const int any = parts_.sequence({point, parts_.repeat(digit, 1, kFractionDigits)});
    if (fraction == Fraction::any) return parts_.sequence({whole, parts_.optional(any)});
    constexpr int kHalf = kFractionDigits / 2;
    const int some = parts_.sequence({point, parts_.repeat(parts_.text("0"), 0, kHalf - 1),
                                      digit_between('1', '9'), parts_.repeat(digit, 0, kHalf)});
    return parts_.sequence({whole, some});
  }

  // Numbers of a magnitude between two; an open end leaves that number out.
  int magnitude(std::int64_t least, bool above, std::int64_t most, bool below) {
    if (least > most || (least == most && (above || below))) return parts_.never();
    if (least == most) return with_fraction(natural(least, least), Fraction::zero);
    std::vector<int> choices = {
        with_fraction(natural(least, least), above ? Fraction::some : Fraction::any)};
    if (least + 1 <= most - 1) {
      choices.push_back(with_fraction(natural(least + 1, most - 1), Fraction::any));
    }
    if (!below) choices.push_back(with_fraction(natural(most, most), Fraction::zero));
    return parts_.choice(std::move(choices));
  }

  int negative(int magnitude) { return parts_.sequence({parts_.text("-"), magnitude}); }

 private:
  int digit_between(char first, char last) {
    ByteSet set;
    for (char digit = first; digit <= last; ++digit) set.set(static_cast<std::size_t>(digit));
    return parts_.bytes(set);
  }
  int any_digits(std::size_t n) {
    return parts_.repeat(digit_between('0', '9'), static_cast<int>(n), static_cast<int>(n));
  }

  // Texts of digits between two of the same length.
  int digits(std::string_view low, std::string_view high) {
    if (low.empty()) return parts_.nothing();
    const std::size_t rest = low.size() - 1;
    const bool from_zeros = low.substr(1).find_first_not_of('0') == std::string_view::npos;
    const bool to_nines = high.substr(1).find_first_not_of('9') == std::string_view::npos;
    if (from_zeros && to_nines) {
      return parts_.sequence({digit_between(low[0], high[0]), any_digits(rest)});
    }
    if (low[0] == high[0]) {
      return parts_.sequence(
          {digit_between(low[0], low[0]), digits(low.substr(1), high.substr(1))});
    }
    const std::string zeros(rest, '0');
    const std::string nines(rest, '9');
    std::vector<int> choices = {
        parts_.sequence({digit_between(low[0], low[0]), digits(low.substr(1), nines)}),
        parts_.sequence({digit_between(high[0], high[0]), digits(zeros, high.substr(1))})};
    if (high[0] - low[0] > 1) {
      choices.push_back(parts_.sequence(
          {digit_between(static_cast<char>(low[0] + 1), static_cast<char>(high[0] - 1)),
           any_digits(rest)}));
    }
    return parts_.choice(std::move(choices));
  }

  GrammarParts& parts_;
};

std::int64_t drawn_in(std::optional<std::int64_t> bound, std::int64_t fallback) {
  return std::clamp(bound.value_or(fallback), -kLargestInteger - 1, kLargestInteger + 1);
}

}  // namespace

int integers_between(const NumberBounds& bounds, GrammarParts& parts) {
  Ranges ranges(parts);
  const std::int64_t least = drawn_in(bounds.least, -kLargestInteger);
  const std::int64_t most = drawn_in(bounds.most, kLargestInteger);
  std::vector<int> choices;
  if (least <= most && least < 0) {
    choices.push_back(ranges.negative(ranges.natural(std::max<std::int64_t>(1, -most), -least)));
  }
  if (least <= most && most >= 0) {
    choices.push_back(ranges.natural(std::max<std::int64_t>(0, least), most));
  }
  return parts.choice(std::move(choices));
}

int numbers_between(const NumberBounds& bounds, GrammarParts& parts) {
  Ranges ranges(parts);
  // Sixteen digits before the point: what lies between is told apart by no float either.
  constexpr std::int64_t kLargest = 9'999'999'999'999'999;
  const std::int64_t least = std::max(drawn_in(bounds.least, -kLargest), -kLargest);
  const std::int64_t most = std::min(drawn_in(bounds.most, kLargest), kLargest);
  const bool above = bounds.above_least && bounds.least.has_value();
  const bool below = bounds.below_most && bounds.most.has_value();
  if (least > most) return parts.never();
  std::vector<int> choices;
  if (least < 0) {  // zero has no sign
    const bool to_zero = most >= 0;
    choices.push_back(
        ranges.negative(ranges.magnitude(to_zero ? 0 : -most, to_zero || below, -least, above)));
  }
  if (most >= 0) {
    choices.push_back(
        ranges.magnitude(std::max<std::int64_t>(0, least), above && least >= 0, most, below));
  }
  return parts.choice(std::move(choices));
}

}  // namespace outrider
