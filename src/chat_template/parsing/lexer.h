// SPDX-License-Identifier: Apache-2.0
// Splits a template's text into tokens. Removes the white space that Jinja removes as configured by
// Hugging Face (trim_blocks, lstrip_blocks), and the last line end.
#ifndef OUTRIDER_CHAT_TEMPLATE_PARSING_LEXER_H_
#define OUTRIDER_CHAT_TEMPLATE_PARSING_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace outrider::jinja {

struct Token {
  enum class Kind : std::uint8_t {
    data,  // text to print
    print_begin,
    print_end,
    block_begin,
    block_end,
    name,
    string,  // unescaped
    integer,
    real,
    symbol,  // an operator or a bracket
    end,
  };
  Kind kind = Kind::end;
  std::string text;
  int line = 1;
  std::int64_t integer = 0;
  double real = 0;
};

// The last token has kind end. Throws Error with the line if the text is not a template. `text`
// must be UTF-8. Thread-safe.
std::vector<Token> split_tokens(std::string_view text);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_PARSING_LEXER_H_
