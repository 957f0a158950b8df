// SPDX-License-Identifier: Apache-2.0
#include "reply/json_scanner.h"

#include <charconv>
#include <string_view>

#include "reply/json_words.h"

namespace outrider {
namespace {

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

int hex_value(char byte) {
  if (is_digit(byte)) return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return -1;
}

}  // namespace

JsonScanner::Step JsonScanner::push(char byte, std::string& out) {
  switch (state_) {
    case State::string:
    case State::escape:
    case State::hex:
    case State::low_surrogate:
    case State::low_surrogate_escape:
      return string_byte(byte, out);
    case State::number:
      return number_byte(byte, out);
    case State::literal:
      if (byte != *literal_rest_) return Step::wrong;
      out += byte;
      ++literal_rest_;
      return *literal_rest_ == '\0' ? end_value() : Step::more;
    case State::ended:
      return Step::wrong;
    default:
      break;
  }
  if (is_blank(byte)) {
    out += byte;
    return Step::more;
  }
  switch (state_) {
    case State::first_key:
    case State::key:
      if (byte == '}' && state_ == State::first_key) return close(byte, out);
      if (byte != '"') return Step::wrong;
      in_key_ = true;
      return take(byte, State::string, out);
    case State::colon:
      return byte == ':' ? take(byte, State::value, out) : Step::wrong;
    case State::first_item:
      return byte == ']' ? close(byte, out) : begin_value(byte, out);
    case State::separator:
      if (byte == ',') return take(byte, open_.back() == '}' ? State::key : State::value, out);
      return byte == open_.back() ? close(byte, out) : Step::wrong;
    default:
      return begin_value(byte, out);
  }
}

bool JsonScanner::complete() const {
  return state_ == State::ended ||
         (state_ == State::number && open_.empty() && number_ends() && number_is_finite());
}

JsonScanner::Step JsonScanner::begin_value(char byte, std::string& out) {
  const auto open = [&](char closing, State next) {
    if (open_.size() == kDeepest) return Step::wrong;
    open_ += closing;
    return take(byte, next, out);
  };
  const auto begin_literal = [&](const char* rest) {
    literal_rest_ = rest;
    return take(byte, State::literal, out);
  };
  switch (byte) {
    case '{':
      return open('}', State::first_key);
    case '[':
      return open(']', State::first_item);
    case '"':
      in_key_ = false;
      return take(byte, State::string, out);
    case 't':
      return begin_literal("rue");
    case 'f':
      return begin_literal("alse");
    case 'n':
      return begin_literal("ull");
    default:
      break;
  }
  if (byte != '-' && !is_digit(byte)) return Step::wrong;
  part_ = byte == '-' ? NumberPart::minus : byte == '0' ? NumberPart::zero : NumberPart::digits;
  number_.assign(1, byte);
  return take(byte, State::number, out);
}

JsonScanner::Step JsonScanner::string_byte(char byte, std::string& out) {
  switch (state_) {
    case State::escape:
      if (byte == 'u') {
        n_hex_ = 0;
        code_ = 0;
        return take(byte, State::hex, out);
      }
      if (std::string_view("\"\\/bfnrt").find(byte) == std::string_view::npos) return Step::wrong;
      return take(byte, State::string, out);
    case State::hex:
      return hex_digit(byte, out);
    case State::low_surrogate:
      return byte == '\\' ? take(byte, State::low_surrogate_escape, out) : Step::wrong;
    case State::low_surrogate_escape:
      if (byte != 'u') return Step::wrong;
      n_hex_ = 0;
      code_ = 0;
      return take(byte, State::hex, out);
    default:
      break;
  }
  if (byte == '\\') return take(byte, State::escape, out);
  if (byte == '"') {
    out += byte;
    if (!in_key_) return end_value();
    state_ = State::colon;
    return Step::more;
  }
  append_escaped(byte, out);
  return Step::more;
}

JsonScanner::Step JsonScanner::hex_digit(char byte, std::string& out) {
  const int value = hex_value(byte);
  if (value < 0) return Step::wrong;
  const unsigned code = code_ * 16 + static_cast<unsigned>(value);
  if (++n_hex_ < 4) {
    code_ = code;
    return take(byte, State::hex, out);
  }
  const bool is_high = code >= 0xD800 && code < 0xDC00;
  const bool is_low = code >= 0xDC00 && code < 0xE000;
  if (is_low != after_high_surrogate_) return Step::wrong;
  after_high_surrogate_ = is_high;
  return take(byte, is_high ? State::low_surrogate : State::string, out);
}

JsonScanner::Step JsonScanner::number_byte(char byte, std::string& out) {
  using Part = NumberPart;
  const auto next = [&]() -> Part {
    if (is_digit(byte)) {
      switch (part_) {
        case Part::minus:
          return byte == '0' ? Part::zero : Part::digits;
        case Part::point:
          return Part::fraction;
        case Part::exponent:
        case Part::exponent_sign:
          return Part::power;
        default:
          return part_;  // another digit
      }
    }
    if (byte == '.') return Part::point;
    return byte == 'e' || byte == 'E' ? Part::exponent : Part::exponent_sign;
  };
  const bool is_integer = part_ == Part::zero || part_ == Part::digits;
  const bool goes_on = (is_digit(byte) && part_ != Part::zero) || (byte == '.' && is_integer) ||
                       ((byte == 'e' || byte == 'E') && (is_integer || part_ == Part::fraction)) ||
                       ((byte == '+' || byte == '-') && part_ == Part::exponent);
  if (goes_on) {
    if (number_.size() == kLongestNumber_bytes) return Step::wrong;
    part_ = next();
    number_ += byte;
    out += byte;
    return Step::more;
  }
  if (!number_ends() || !number_is_finite()) return Step::wrong;
  if (end_value() == Step::done) return Step::done_before;
  return push(byte, out);
}

JsonScanner::Step JsonScanner::end_value() {
  state_ = open_.empty() ? State::ended : State::separator;
  return open_.empty() ? Step::done : Step::more;
}

JsonScanner::Step JsonScanner::close(char byte, std::string& out) {
  out += byte;
  open_.pop_back();
  return end_value();
}

JsonScanner::Step JsonScanner::take(char byte, State next, std::string& out) {
  out += byte;
  state_ = next;
  return Step::more;
}

bool JsonScanner::number_ends() const {
  return part_ == NumberPart::zero || part_ == NumberPart::digits ||
         part_ == NumberPart::fraction || part_ == NumberPart::power;
}

// A number has fewer digits than the largest power of ten in a double. So only its exponent can
// make it overflow; a number that is too small becomes 0.
bool JsonScanner::number_is_finite() const {
  double value = 0;
  const auto [end, error] = std::from_chars(number_.data(), number_.data() + number_.size(), value);
  return error != std::errc::result_out_of_range || number_.find("e-") != std::string::npos ||
         number_.find("E-") != std::string::npos;
}

}  // namespace outrider
