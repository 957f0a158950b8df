// SPDX-License-Identifier: Apache-2.0
// Reads one JSON value (RFC 8259) byte by byte and passes its text on as it comes.
#ifndef OUTRIDER_REPLY_JSON_SCANNER_H_
#define OUTRIDER_REPLY_JSON_SCANNER_H_

#include <cstddef>
#include <string>

namespace outrider {

// Passes on the text itself, except that control characters within strings, which models write and
// JSON forbids, are escaped. Refuses, besides bad syntax, what nlohmann_json refuses: single
// surrogates and numbers beyond double. (UTF-8 is not checked.) Not thread-safe.
class JsonScanner {
 public:
  // Limits of nesting and of a number's characters: both far more than a tool's arguments have;
  // later readers recurse.
  static constexpr std::size_t kDeepest = 100;
  static constexpr std::size_t kLongestNumber_bytes = 256;

  enum class Step {
    more,
    done,         // the byte ended the value
    done_before,  // the value (a number) ended before the byte, which was not taken
    wrong,        // no value may contain the byte here; it was not taken
  };
  Step push(char byte, std::string& out);

  // Whether the text may end here: only a number does not mark its own end.
  bool complete() const;

 private:
  enum class State {
    value,
    first_key,  // or the end of the object
    key,
    colon,
    first_item,  // or the end of the array
    separator,   // a comma, or the end of the innermost object or array
    string,
    escape,
    hex,
    low_surrogate,         // a backslash must come
    low_surrogate_escape,  // a u must come
    literal,
    number,
    ended,
  };
  enum class NumberPart { minus, zero, digits, point, fraction, exponent, exponent_sign, power };

  Step begin_value(char byte, std::string& out);
  Step string_byte(char byte, std::string& out);
  Step hex_digit(char byte, std::string& out);
  Step number_byte(char byte, std::string& out);
  Step end_value();
  Step close(char byte, std::string& out);
  Step take(char byte, State next, std::string& out);
  bool number_ends() const;
  bool number_is_finite() const;

  State state_ = State::value;
  std::string open_;  // the closing brackets still to come, innermost last
  bool in_key_ = false;
  std::size_t n_hex_ = 0;
  unsigned code_ = 0;
  bool after_high_surrogate_ = false;
  const char* literal_rest_ = "";
  NumberPart part_ = NumberPart::minus;
  std::string number_;
};

}  // namespace outrider

#endif  // OUTRIDER_REPLY_JSON_SCANNER_H_
