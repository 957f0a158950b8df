// A grammar's text as its readers walk over it, character by character.
#ifndef OUTRIDER_GRAMMAR_SCANNER_H_
#define OUTRIDER_GRAMMAR_SCANNER_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace outrider {

// Not thread-safe. The text outlives it.
class Scanner {
 public:
  // Throws Error unless the text is UTF-8 of at most kLongestGrammar_bytes. `operation` begins all
  // messages.
  Scanner(std::string_view text, const char* operation);

  static constexpr char32_t kEnd = 0xFFFFFFFF;
  char32_t peek() const;  // the character here; kEnd behind the last
  char32_t take();        // and goes on behind it; kEnd again and again
  bool starts(std::string_view text) const { return text_.substr(at_).starts_with(text); }
  bool take_if(std::string_view text);
  bool ended() const { return at_ >= text_.size(); }
  std::size_t position() const { return at_; }
  std::string_view from(std::size_t position) const {
    return text_.substr(position, at_ - position);
  }

  // n hexadecimal digits as a character; throws Error where there are fewer, or they spell none.
  char32_t take_hex(int n);
  // Decimal digits, at least one; throws Error beyond kMostRepeats.
  int take_count();

  // Throws Error naming the line and the column, in characters from 1, of `position` or of here.
  [[noreturn]] void fail(std::string_view expected) const;
  [[noreturn]] void fail(std::string_view expected, std::string_view got) const;
  [[noreturn]] void fail_at(std::size_t position, std::string_view expected,
                            std::string_view got) const;

 private:
  std::string here() const;  // what is there, for messages

  std::string_view text_;
  const char* operation_;
  std::size_t at_ = 0;
};

// {m}, {m,} or {m,n} behind a brace that has been read.
struct Bounds {
  int least = 0;
  int most = 0;  // or kUnlimited (parts.h)
};
Bounds take_bounds(Scanner& scanner);

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_SCANNER_H_
