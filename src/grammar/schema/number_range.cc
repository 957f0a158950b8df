// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema/number_range.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace outrider {
namespace {

constexpr int kIntegerDigits = 18;
constexpr int kNumberDigits = 15;
constexpr std::size_t kMultipleDigits = 9;
constexpr std::size_t kMaxRemainders = 4000;  // over all places of a number

std::int64_t power_of_ten(int n) {
  std::int64_t power = 1;
  for (; n > 0; --n) power *= 10;
  return power;
}

// Generates digits from left to right. What may follow depends on whether the digits so far equal
// those of a bound, and on the remainder of the number if zeros follow.
class NumberWriter {
 public:
  NumberWriter(const NumberForm& form, GrammarParts& parts)
      : form_(form), parts_(parts), is_whole_(form.whole) {
    if (form.multiple_of) set_modulus(*form.multiple_of);
  }

  std::optional<int> write() {
    if (has_too_many_) return std::nullopt;
    const auto is_negative = [](const std::optional<NumberBound>& bound) {
      return bound && bound->value.negative;
    };
    const auto side = [](const std::optional<NumberBound>& bound) {
      if (!bound) return Side{};
      return Side{.is_there = true,
                  .n_whole = static_cast<int>(bound->value.whole.size()),
                  .digits = bound->value.whole + bound->value.fraction,
                  .is_left_out = bound->is_left_out};
    };
    std::vector<int> choices;
    if (!form_.min || is_negative(form_.min)) {  // the more negative, the larger the magnitude
      low_ = is_negative(form_.max)
                 ? side(form_.max)
                 : Side{.is_there = true, .n_whole = 1, .digits = "0", .is_left_out = true};
      high_ = side(form_.min);
      choices.push_back(parts_.sequence({parts_.text("-"), magnitudes()}));
    }
    if (!is_negative(form_.max)) {
      low_ = is_negative(form_.min) ? Side{} : side(form_.min);
      high_ = side(form_.max);
      choices.push_back(magnitudes());
    }
    if (has_too_many_) return std::nullopt;
    return parts_.choice(std::move(choices));
  }

 private:
  struct Side {  // a bound of the magnitude
    bool is_there = false;
    int n_whole = 0;
    std::string digits = {};
    bool is_left_out = false;

    int n_digits() const { return static_cast<int>(digits.size()); }
    int digit(int at) const { return at < n_digits() ? digits[static_cast<std::size_t>(at)] : '0'; }
  };
  // Whether the digits so far equal those of the bounds.
  struct Along {
    bool low = false;
    bool high = false;
    auto operator<=>(const Along&) const = default;
  };

  void set_modulus(const Decimal& multiple_of) {
    const std::string digits = multiple_of.whole + multiple_of.fraction;
    has_too_many_ = digits.size() > kMultipleDigits;
    if (has_too_many_) return;
    is_multiple_ = true;
    modulus_ = std::stoll(digits);
    n_scale_ = static_cast<int>(multiple_of.fraction.size());
    if (!is_whole_) return;
    // An integer is a multiple of a / 10^n if it is one of a / gcd(a, 10^n).
    modulus_ /= std::gcd(modulus_, power_of_ten(n_scale_));
    n_scale_ = 0;
  }

  // Magnitudes between low_ and high_, by the number of digits before the point.
  int magnitudes() {
    std::vector<int> choices;
    const int n_max = is_whole_ ? kIntegerDigits : kNumberDigits - n_scale_;
    for (n_whole_ = 1; n_whole_ <= n_max; ++n_whole_) {
      if (low_.is_there && low_.n_whole > n_whole_) continue;
      if (high_.is_there && high_.n_whole < n_whole_) break;
      n_fraction_ = is_whole_ || is_multiple_ ? n_scale_ : kNumberDigits - n_whole_;
      const Along along{.low = low_.is_there && low_.n_whole == n_whole_,
                        .high = high_.is_there && high_.n_whole == n_whole_};
      choices.push_back(behind(0, along, 0));
    }
    along_bounds_.clear();
    return parts_.choice(std::move(choices));
  }

  int digits(int min, int max) {
    ByteSet set;
    for (char digit = '0'; digit <= '9'; ++digit) set.set(static_cast<std::size_t>(digit));
    return parts_.repeat(parts_.bytes(set), min, max);
  }
  int behind_point(int part) { return parts_.sequence({parts_.text("."), part}); }

  // What may follow the first n digits.
  int behind(int n, Along along, std::int64_t remainder) {
    const int n_left = n_whole_ + n_fraction_ - n;
    if (modulus_ > 1 && (modulus_ - remainder) % modulus_ >= power_of_ten(n_left)) {
      return parts_.never();
    }
    if (n > 0 && !along.low && !along.high && modulus_ == 1) {
      if (n > n_whole_) return digits(0, n_left);
      const int whole = digits(n_whole_ - n, n_whole_ - n);
      if (n_fraction_ == 0) return whole;
      return parts_.sequence({whole, parts_.optional(behind_point(digits(1, n_fraction_)))});
    }
    if (modulus_ == 1) return parts_.choice(choices_behind(n, along, remainder));
    // Without a bound, numbers of all lengths continue alike.
    const bool is_free = n > 0 && !along.low && !along.high;
    int& known = is_free
                     ? free_.try_emplace({n_whole_ - n, n_left, remainder}, -1).first->second
                     : along_bounds_.try_emplace({n_whole_, n, along, remainder}, -1).first->second;
    if (known >= 0) return known;
    if (free_.size() + along_bounds_.size() > kMaxRemainders) {
      has_too_many_ = true;
      return parts_.never();
    }
    const int part = parts_.shared("multiple", parts_.choice(choices_behind(n, along, remainder)));
    known = part;
    return part;
  }

  std::vector<int> choices_behind(int n, Along along, std::int64_t remainder) {
    std::vector<int> choices;
    if (n >= n_whole_ && remainder == 0 &&
        (!along.low || (n >= low_.n_digits() && !low_.is_left_out)) &&
        (!along.high || n < high_.n_digits() || !high_.is_left_out)) {
      choices.push_back(parts_.nothing());
    }
    const int n_left = n_whole_ + n_fraction_ - n;
    if (n_left == 0) return choices;
    std::map<std::tuple<Along, std::int64_t>, ByteSet> digits_by_next;
    for (int digit = n == 0 && n_whole_ > 1 ? '1' : '0'; digit <= '9'; ++digit) {
      if (along.low && digit < low_.digit(n)) continue;
      if (along.high && digit > high_.digit(n)) continue;
      Along next{.low = along.low && digit == low_.digit(n),
                 .high = along.high && digit == high_.digit(n)};
      // After all digits of the lower bound, any digits satisfy it.
      const bool is_kept = n + 1 >= std::max(n_whole_, low_.n_digits()) && !low_.is_left_out;
      if (is_kept) next.low = false;
      const std::int64_t value = (digit - '0') * (power_of_ten(n_left - 1) % modulus_);
      digits_by_next[{next, (remainder + value) % modulus_}].set(static_cast<std::size_t>(digit));
    }
    for (const auto& [next, set] : digits_by_next) {
      const auto& [next_along, next_remainder] = next;
      const int digit = parts_.bytes(set);
      const int part = parts_.sequence({digit, behind(n + 1, next_along, next_remainder)});
      choices.push_back(n == n_whole_ ? behind_point(part) : part);
    }
    return choices;
  }

  const NumberForm& form_;
  GrammarParts& parts_;
  bool is_whole_;
  bool is_multiple_ = false;
  bool has_too_many_ = false;
  std::int64_t modulus_ = 1;  // numbers times 10^n_scale_ must be multiples of it
  int n_scale_ = 0;

  // For the numbers that are being generated.
  Side low_;
  Side high_;
  int n_whole_ = 0;
  int n_fraction_ = 0;
  // Cached parts. Those that follow no bound are the same for all numbers: keyed by the digits left
  // before the point, and in total.
  std::map<std::tuple<int, int, std::int64_t>, int> free_;
  std::map<std::tuple<int, int, Along, std::int64_t>, int> along_bounds_;
};

}  // namespace

Decimal Decimal::read(std::string_view number) {
  Decimal result;
  if (number.starts_with('-')) {
    result.negative = true;
    number.remove_prefix(1);
  }
  int exponent = 0;
  if (const std::size_t at = number.find_first_of("eE"); at != std::string_view::npos) {
    exponent = std::atoi(std::string(number.substr(at + 1)).c_str());
    number = number.substr(0, at);
  }
  const std::size_t point = std::min(number.find('.'), number.size());
  result.whole = number.substr(0, point);
  if (point < number.size()) result.fraction = number.substr(point + 1);
  const auto n_moved = static_cast<std::size_t>(std::abs(exponent));
  if (exponent > 0) {
    if (result.fraction.size() < n_moved) result.fraction.resize(n_moved, '0');
    result.whole += result.fraction.substr(0, n_moved);
    result.fraction.erase(0, n_moved);
  } else if (exponent < 0) {
    if (result.whole.size() < n_moved) {
      result.whole = std::string(n_moved - result.whole.size(), '0') + result.whole;
    }
    result.fraction = result.whole.substr(result.whole.size() - n_moved) + result.fraction;
    result.whole.resize(result.whole.size() - n_moved);
  }
  result.whole.erase(0, std::min(result.whole.find_first_not_of('0'), result.whole.size()));
  if (result.whole.empty()) result.whole.push_back('0');
  result.fraction.resize(result.fraction.find_last_not_of('0') + 1);  // npos + 1 is 0
  if (result.is_zero()) result.negative = false;
  return result;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  int order = 0;
  if (a.whole.size() != b.whole.size()) {
    order = a.whole.size() < b.whole.size() ? -1 : 1;
  } else {
    order = (a.whole + a.fraction).compare(b.whole + b.fraction);
  }
  return a.negative ? -order : order;
}

std::optional<int> numbers_of(const NumberForm& form, GrammarParts& parts) {
  return NumberWriter(form, parts).write();
}

}  // namespace outrider
