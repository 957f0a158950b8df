// A template's text as tokens, with the white space that Jinja takes off already gone: as Hugging
// Face configures it (trim_blocks, lstrip_blocks), the last line end dropped.
#ifndef OUTRIDER_CHAT_TEMPLATE_LEXER_H_
#define OUTRIDER_CHAT_TEMPLATE_LEXER_H_

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

// Ends with a token of kind end. Throws Error naming the line where the text is no template.
// `text` is UTF-8. Thread-safe.
std::vector<Token> split_tokens(std::string_view text);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_LEXER_H_
