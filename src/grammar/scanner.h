// SPDX-License-Identifier: Apache-2.0
// Reads the text of a grammar character by character.
#ifndef OUTRIDER_GRAMMAR_SCANNER_H_
#define OUTRIDER_GRAMMAR_SCANNER_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace outrider {

// Not thread-safe. The text must outlive it.
class Scanner {
 public:
  // Throws Error unless the text is UTF-8 of at most kLongestGrammar_bytes. `operation` begins all
  // messages.
  Scanner(std::string_view text, const char* operation);

  static constexpr char32_t kEnd = 0xFFFFFFFF;
  char32_t peek() const;  // the next character; kEnd after the last
  char32_t take();        // returns it and advances; kEnd repeatedly at the end
  bool starts(std::string_view text) const { return text_.substr(at_).starts_with(text); }
  bool take_if(std::string_view text);
  bool ended() const { return at_ >= text_.size(); }
  std::size_t position() const { return at_; }
  std::string_view from(std::size_t position) const {
    return text_.substr(position, at_ - position);
  }

  // n hexadecimal digits as a character; throws Error if there are fewer, or they are not a
  // character.
  char32_t take_hex(int n);
  // A decimal number of at least one digit; throws Error above kMaxRepeats.
  int take_count();

  // Throws Error with line and column, in characters from 1, of `position` or of the current place.
  [[noreturn]] void fail(std::string_view expected) const;
  [[noreturn]] void fail(std::string_view expected, std::string_view got) const;
  [[noreturn]] void fail_at(std::size_t position, std::string_view expected,
                            std::string_view got) const;

 private:
  std::string here() const;  // the text there, for messages

  std::string_view text_;
  const char* operation_;
  std::size_t at_ = 0;
};

// {m}, {m,} or {m,n}, after the opening brace.
struct Bounds {
  int min = 0;
  int max = 0;  // or kUnlimited (parts.h)
};
Bounds take_bounds(Scanner& scanner);

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_SCANNER_H_
