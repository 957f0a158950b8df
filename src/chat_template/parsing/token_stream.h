// SPDX-License-Identifier: Apache-2.0
// The tokens of a template with a current position. Not thread-safe.
#ifndef OUTRIDER_CHAT_TEMPLATE_PARSING_TOKEN_STREAM_H_
#define OUTRIDER_CHAT_TEMPLATE_PARSING_TOKEN_STREAM_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat_template/parsing/lexer.h"
#include "chat_template/parsing/syntax_error.h"

namespace outrider::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  int line() const { return current().line; }
  bool is(Token::Kind kind) const { return current().kind == kind; }
  bool is_symbol(std::string_view text) const { return is_symbol(current(), text); }
  bool is_name(std::string_view text) const { return is_name(current(), text); }
  static bool is_symbol(const Token& token, std::string_view text) {
    return token.kind == Token::Kind::symbol && token.text == text;
  }
  static bool is_name(const Token& token, std::string_view text) {
    return token.kind == Token::Kind::name && token.text == text;
  }

  Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  bool take_symbol(std::string_view text) {
    if (!is_symbol(text)) return false;
    take();
    return true;
  }
  bool take_name(std::string_view text) {
    if (!is_name(text)) return false;
    take();
    return true;
  }
  void expect_symbol(std::string_view text) {
    if (!take_symbol(text)) fail_expected(fmt::format("'{}'", text));
  }
  void expect_name(std::string_view text) {
    if (!take_name(text)) fail_expected(fmt::format("'{}'", text));
  }
  std::string expect_any_name() {
    if (!is(Token::Kind::name)) fail_expected("a name");
    return take().text;
  }
  void expect(Token::Kind kind, std::string_view what) {
    if (!is(kind)) fail_expected(what);
    take();
  }

  [[noreturn]] void fail_expected(std::string_view what) const {
    syntax_error(line(), fmt::format("expected {}, got {}", what, describe(current())));
  }

  static std::string describe(const Token& token) {
    switch (token.kind) {
      case Token::Kind::end:
        return "the end of the template";
      case Token::Kind::data:
        return "text";
      case Token::Kind::string:
        return "a string";
      default:
        return fmt::format("'{}'", token.text);
    }
  }

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_PARSING_TOKEN_STREAM_H_
