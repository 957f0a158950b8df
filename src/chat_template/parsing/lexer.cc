// SPDX-License-Identifier: Apache-2.0
#include "chat_template/parsing/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "chat_template/parsing/syntax_error.h"
#include "chat_template/parsing/unescape.h"
#include "chat_template/values/characters.h"

namespace outrider::jinja {
namespace {

// All kinds of line ends become \n; the last one is dropped.
std::string normalize(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\r') {
      out += text[at];
    } else if (at + 1 == text.size() || text[at + 1] != '\n') {
      out += '\n';
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_name_begin(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit_of(char c, int base) {
  if (c >= '0' && c <= '9') return c - '0' < base;
  if (base < 16) return false;
  return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// The longest come first.
constexpr std::array<std::string_view, 26> kSymbols = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

class Lexer {
 public:
  explicit Lexer(std::string text) : text_(std::move(text)) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) read_data();
    add(Token::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_here(std::string_view problem) const { syntax_error(line_, problem); }

  bool follows(std::string_view what) const { return text_.compare(at_, what.size(), what) == 0; }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void skip(std::size_t n) {
    line_ +=
        static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                    text_.begin() + static_cast<std::ptrdiff_t>(at_ + n), '\n'));
    at_ += n;
  }
  std::size_t blank_run(std::size_t from) const {
    const std::string_view rest = std::string_view(text_).substr(from);
    return rest.size() - strip(rest, Side::left).size();
  }
  Token& add(Token::Kind kind, std::string text) {
    tokens_.push_back({.kind = kind, .text = std::move(text), .line = line_});
    return tokens_.back();
  }

  // Reads the text before the next tag, and that tag.
  void read_data() {
    std::size_t tag = at_;
    for (;; ++tag) {
      tag = text_.find('{', tag);
      if (tag == std::string::npos) {
        add(Token::Kind::data, text_.substr(at_));
        skip(text_.size() - at_);
        return;
      }
      const char next = tag + 1 < text_.size() ? text_[tag + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') break;
    }
    const char kind = text_[tag + 1];
    const char sign = tag + 2 < text_.size() ? text_[tag + 2] : '\0';
    std::string_view data = std::string_view(text_).substr(at_, tag - at_);
    if (sign == '-') {
      data = strip(data, Side::right);
    } else if (sign != '+' && kind != '{') {
      const std::size_t newline = data.rfind('\n');
      const std::size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
      const bool whole_line = line_begin > 0 || at_begin_of_line_;
      if (whole_line && strip(data.substr(line_begin), Side::left).empty()) {
        data = data.substr(0, line_begin);
      }
    }
    if (!data.empty()) add(Token::Kind::data, std::string(data));
    skip(tag - at_);
    const std::size_t n_opening = sign == '-' || sign == '+' ? 3 : 2;
    if (kind == '#') {
      read_comment(n_opening);
    } else if (kind == '{') {
      skip(n_opening);
      add(Token::Kind::print_begin, "{{");
      read_tag(true);
    } else if (!read_raw(n_opening)) {
      skip(n_opening);
      add(Token::Kind::block_begin, "{%");
      read_tag(false);
    }
    at_begin_of_line_ = at_ > 0 && text_[at_ - 1] == '\n';
  }

  // After a tag that ends at at_ (its last two characters are there): skips the blanks that belong
  // to it.
  void skip_closing(std::string_view closing, bool trims_newline) {
    if (peek() == '-') {
      skip(1 + closing.size());
      skip(blank_run(at_));
    } else if (peek() == '+') {
      skip(1 + closing.size());
    } else {
      skip(closing.size());
      if (trims_newline && peek() == '\n') skip(1);
    }
  }

  void read_comment(std::size_t n_opening) {
    const int line = line_;
    const std::size_t end = text_.find("#}", at_ + n_opening);
    if (end == std::string::npos) syntax_error(line, "expected the end of the comment, got none");
    std::size_t closing = end;
    if (closing > at_ + n_opening && (text_[closing - 1] == '-' || text_[closing - 1] == '+')) {
      --closing;
    }
    skip(closing - at_);
    skip_closing("#}", true);
  }

  // Reads {% raw %} to {% endraw %} as one token of text; false if it is another tag.
  bool read_raw(std::size_t n_opening) {
    std::size_t at = at_ + n_opening;
    at += blank_run(at);
    if (text_.compare(at, 3, "raw") != 0) return false;
    at += 3;
    at += blank_run(at);
    if (text_.compare(at, 3, "-%}") == 0) {
      at += 3;
      at += blank_run(at);
    } else if (text_.compare(at, 2, "%}") == 0) {
      at += 2;
    } else {
      return false;
    }
    const int line = line_;
    const bool at_line_begin = text_[at - 1] == '\n';
    skip(at - at_);
    for (std::size_t end = at_; (end = text_.find("{%", end)) != std::string::npos; ++end) {
      std::size_t behind = end + 2;
      const char sign = behind < text_.size() ? text_[behind] : '\0';
      if (sign == '-' || sign == '+') ++behind;
      behind += blank_run(behind);
      if (text_.compare(behind, 6, "endraw") != 0) continue;
      behind += 6;
      behind += blank_run(behind);
      const bool signed_end =
          text_.compare(behind, 3, "-%}") == 0 || text_.compare(behind, 3, "+%}") == 0;
      if (!signed_end && text_.compare(behind, 2, "%}") != 0) continue;
      std::string_view data = std::string_view(text_).substr(at_, end - at_);
      if (sign == '-') {
        data = strip(data, Side::right);
      } else if (sign != '+') {
        const std::size_t newline = data.rfind('\n');
        const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
        if ((begin > 0 || at_line_begin) && strip(data.substr(begin), Side::left).empty()) {
          data = data.substr(0, begin);
        }
      }
      if (!data.empty()) add(Token::Kind::data, std::string(data));
      skip(behind - at_);
      skip_closing("%}", true);
      return true;
    }
    syntax_error(line, "expected {% endraw %}, got none");
  }

  // Reads the tokens between {{ and }}, or {% and %}, and the closing mark.
  void read_tag(bool is_print) {
    const std::string_view closing = is_print ? "}}" : "%}";
    std::string brackets;
    for (;;) {
      skip(blank_run(at_));
      if (at_ >= text_.size()) {
        fail_here(fmt::format("expected {}, got the end of the template", closing));
      }
      if (brackets.empty()) {
        const bool has_sign = peek() == '-' || (peek() == '+' && !is_print);
        if (text_.compare(at_ + (has_sign ? 1 : 0), 2, closing) == 0) {
          add(is_print ? Token::Kind::print_end : Token::Kind::block_end, std::string(closing));
          skip_closing(closing, !is_print);
          return;
        }
      }
      const char c = peek();
      if (c >= '0' && c <= '9') {
        read_number();
      } else if (is_name_begin(c) || static_cast<unsigned char>(c) >= 0x80) {
        read_name();
      } else if (c == '\'' || c == '"') {
        read_string();
      } else {
        read_symbol(brackets);
      }
    }
  }

  // Names may have letters and digits of all scripts.
  void read_name() {
    const std::size_t begin = at_;
    std::size_t end = at_;
    while (end < text_.size()) {
      const Character c = character_at(text_, end);
      const bool is_letter = c.value == '_' || is_alphabetic(c.value);
      if (!is_letter && (end == begin || !is_decimal(c.value))) break;
      end += c.n_bytes;
    }
    if (end == begin) {
      fail_here(fmt::format("expected an expression, got the character '{}'",
                            text_.substr(at_, character_at(text_, at_).n_bytes)));
    }
    add(Token::Kind::name, text_.substr(begin, end - begin));
    skip(end - begin);
  }

  // The end of digits of a base, with single underscores between them, from `from` on.
  std::size_t digits_end(std::size_t from, int base) const {
    std::size_t end = from;
    while (end < text_.size()) {
      const bool joined = text_[end] == '_' && end > from;
      const std::size_t digit = joined ? end + 1 : end;
      if (digit >= text_.size() || !is_digit_of(text_[digit], base)) break;
      end = digit + 1;
    }
    return end;
  }

  void read_number() {
    if (read_real()) return;
    int base = 10;
    std::size_t begin = at_;
    const char mark = static_cast<char>(peek(1) | 0x20);  // lower case
    if (peek() == '0' && (mark == 'x' || mark == 'o' || mark == 'b')) {
      base = mark == 'x' ? 16 : mark == 'o' ? 8 : 2;
      begin = at_ + 2;
      if (begin < text_.size() && text_[begin] == '_') ++begin;
      if (digits_end(begin, base) == begin) {  // "0" followed by a name
        base = 10;
        begin = at_;
      }
    }
    std::size_t end = digits_end(begin, base);
    if (base == 10 && peek() == '0') {  // no leading zeros
      end = at_ + 1;
      while (end < text_.size() && (text_[end] == '0' || (text_.compare(end, 2, "_0") == 0))) {
        end += text_[end] == '0' ? 1 : 2;
      }
    }
    std::string digits = text_.substr(begin, end - begin);
    std::erase(digits, '_');
    Token& token = add(Token::Kind::integer, text_.substr(at_, end - at_));
    const auto [behind, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), token.integer, base);
    if (error != std::errc()) {
      fail_here(fmt::format("expected an integer of 64 bits, got {}", token.text));
    }
    skip(end - at_);
  }

  bool read_real() {
    std::size_t end = digits_end(at_, 10);
    bool is_real = false;
    if (end < text_.size() && text_[end] == '.' && digits_end(end + 1, 10) > end + 1 &&
        text_[end + 1] != '_') {
      end = digits_end(end + 1, 10);
      is_real = true;
    }
    if (end < text_.size() && (text_[end] | 0x20) == 'e') {
      std::size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (digits_end(exponent, 10) > exponent) {
        end = digits_end(exponent, 10);
        is_real = true;
      }
    }
    // After a dot comes the number of an item: x.0.1
    if (!is_real || (at_ > 0 && text_[at_ - 1] == '.')) return false;
    std::string digits = text_.substr(at_, end - at_);
    std::erase(digits, '_');
    Token& token = add(Token::Kind::real, text_.substr(at_, end - at_));
    const auto parsed = read_real_number(digits);
    token.real = parsed.value_or(0);
    skip(end - at_);
    return true;
  }

  void read_string() {
    const char quote = peek();
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) fail_here("expected the end of a string, got none");
    const std::string_view spelled = std::string_view(text_).substr(at_ + 1, end - at_ - 1);
    std::string problem;
    const std::optional<std::string> value = unescape(spelled, problem);
    if (!value) fail_here(problem);
    add(Token::Kind::string, *value);
    skip(end + 1 - at_);
  }

  void read_symbol(std::string& brackets) {
    const auto* symbol = std::find_if(kSymbols.begin(), kSymbols.end(),
                                      [this](std::string_view one) { return follows(one); });
    if (symbol == kSymbols.end()) {
      fail_here(fmt::format("expected an expression, got the character '{}'",
                            text_.substr(at_, character_at(text_, at_).n_bytes)));
    }
    const char c = symbol->front();
    if (c == '(' || c == '[' || c == '{') {
      brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (brackets.empty()) fail_here(fmt::format("expected no '{}', got one", c));
      if (brackets.back() != c) {
        fail_here(fmt::format("expected '{}', got '{}'", brackets.back(), c));
      }
      brackets.pop_back();
    }
    add(Token::Kind::symbol, std::string(*symbol));
    skip(symbol->size());
  }

  std::string text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool at_begin_of_line_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> split_tokens(std::string_view text) { return Lexer(normalize(text)).run(); }

}  // namespace outrider::jinja
