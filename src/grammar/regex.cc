// SPDX-License-Identifier: Apache-2.0
#include "grammar/regex.h"

#include <fmt/core.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "grammar/limits.h"
#include "grammar/scanner.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "read regular expression";

// As in ECMA-262.
const CodePoints& digits() {
  static const CodePoints set = {{'0', '9'}};
  return set;
}
const CodePoints& word_characters() {
  static const CodePoints set = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return set;
}
// All characters that ECMA-262 or Python's expressions regard as white space.
const CodePoints& white_space_of_all() {
  static const CodePoints set = {{9, 13},          {32, 32},         {0xA0, 0xA0},
                                 {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
                                 {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
  return set;
}
const CodePoints& white_space_of_any() {
  static const CodePoints set = [] {
    CodePoints all = white_space_of_all();
    all.add(CodePoints{{0x1C, 0x1F}, {0x85, 0x85}, {0xFEFF, 0xFEFF}});
    return all;
  }();
  return set;
}
const CodePoints& line_ends() {
  static const CodePoints set = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  return set;
}

bool is_letter_or_digit(char32_t c) {
  return c < 0x80 && word_characters().contains(c) && c != '_';
}

class Reader {
 public:
  Reader(std::string_view text, Anchors anchors, GrammarParts& parts,
         const std::function<int(const CodePoints&)>& character, const char* operation)
      : scanner_(text, operation), anchors_(anchors), parts_(parts), character_(character) {}

  int read() {
    const int part = read_alternatives(0);
    if (!scanner_.ended()) scanner_.fail("the end", "a parenthesis that opens nowhere");
    return part;
  }

 private:
  int anything() { return parts_.repeat(character_(CodePoints::all()), 0, kUnlimited); }

  int read_alternatives(int depth) {
    if (depth > kDeepestGrammar) {
      scanner_.fail(fmt::format("at most {} groups within groups", kDeepestGrammar), "more");
    }
    std::vector<int> choices = {read_sequence(depth)};
    while (scanner_.take_if("|")) choices.push_back(read_sequence(depth));
    return parts_.choice(std::move(choices));
  }

  // At the top level, each alternative has anchors of its own.
  int read_sequence(int depth) {
    std::vector<int> row;
    const bool searches = depth == 0 && anchors_ == Anchors::stated;
    const bool begins = depth == 0 && scanner_.take_if("^");
    if (searches && !begins) row.push_back(anything());
    bool ends = false;
    bool repeatable = false;  // whether the last one may be repeated
    while (!scanner_.ended() && !scanner_.starts("|") && !scanner_.starts(")")) {
      if (ends) scanner_.fail("nothing behind $");
      const char32_t c = scanner_.peek();
      if (c == '$' && depth == 0) {
        scanner_.take();
        ends = true;
      } else if (c == '*' || c == '+' || c == '?' || c == '{') {
        if (!repeatable) scanner_.fail("something to repeat");
        row.back() = read_repetition(row.back());
        repeatable = false;
      } else {
        row.push_back(read_atom(depth));
        repeatable = true;
      }
    }
    if (searches && !ends) row.push_back(anything());
    return parts_.sequence(std::move(row));
  }

  int read_repetition(int part) {
    const char32_t c = scanner_.take();
    Bounds bounds{.min = c == '+' ? 1 : 0, .max = c == '?' ? 1 : kUnlimited};
    if (c == '{') bounds = take_bounds(scanner_);
    scanner_.take_if("?");  // lazy or not, the language is the same
    if (scanner_.starts("+")) scanner_.fail("no possessive repetition");
    return parts_.repeat(part, bounds.min, bounds.max);
  }

  int read_atom(int depth) {
    const char32_t c = scanner_.peek();
    if (c == '(') return read_group(depth);
    if (c == '[') return character_(read_class());
    if (c == '\\') return character_(read_escape());
    if (c == '^') scanner_.fail("^ at the beginning alone");
    if (c == '$') scanner_.fail("$ at the end alone");
    if (c == ']' || c == '}') scanner_.fail("an escape", fmt::format("{}", static_cast<char>(c)));
    scanner_.take();
    if (c == '.') return character_(line_ends().complement());
    return character_({{c, c}});
  }

  int read_group(int depth) {
    const std::size_t first = scanner_.position();
    scanner_.take();
    if (scanner_.take_if("?")) {
      if (scanner_.starts("=") || scanner_.starts("!")) {
        scanner_.fail_at(first, "a group", "lookahead, which is not supported");
      }
      if (scanner_.starts("<=") || scanner_.starts("<!")) {
        scanner_.fail_at(first, "a group", "lookbehind, which is not supported");
      }
      if (scanner_.take_if("<") || scanner_.take_if("P<")) {
        while (!scanner_.ended() && scanner_.take() != '>') {
        }
      } else if (!scanner_.take_if(":")) {
        scanner_.fail_at(first, "(?: or (?<name>",
                         "flags or another kind, which are not supported");
      }
    }
    const int part = read_alternatives(depth + 1);
    if (!scanner_.take_if(")")) scanner_.fail(")");
    return part;
  }

  // After a backslash, at which the scanner is. In a negated class, the wider set is excluded.
  CodePoints read_escape(bool negated = false) {
    const std::size_t first = scanner_.position();
    scanner_.take();
    const char32_t c = scanner_.take();
    const auto one = [](char32_t value) { return CodePoints{{value, value}}; };
    switch (c) {
      case 'd':
        return digits();
      case 'D':
        return digits().complement();
      case 'w':
        return word_characters();
      case 'W':
        return word_characters().complement();
      case 's':
        return negated ? white_space_of_any() : white_space_of_all();
      case 'S':
        return (negated ? white_space_of_all() : white_space_of_any()).complement();
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case '0':
        if (!digits().contains(scanner_.peek())) return one(0);
        break;
      case 'x':
        return one(scanner_.take_hex(2));
      case 'u':
        if (scanner_.take_if("{")) {
          const std::size_t begin = scanner_.position();
          int n = 0;
          for (std::size_t i = begin; n < 7; ++n, ++i) {
            if (scanner_.ended() || scanner_.peek() == '}') break;
            scanner_.take();
          }
          const std::string_view digits_read = scanner_.from(begin);
          if (n < 1 || n > 6 || !scanner_.take_if("}")) scanner_.fail("1 to 6 digits and }");
          Scanner inner(digits_read, kOperation);
          return one(inner.take_hex(n));
        }
        return one(scanner_.take_hex(4));
      case 'b':
      case 'B':
        scanner_.fail_at(first, "a character", "a word boundary, which is not supported");
      case 'k':
        scanner_.fail_at(first, "a character", "a back reference, which is not supported");
      case 'p':
      case 'P':
        scanner_.fail_at(first, "a character", "a Unicode property, which is not supported");
      default:
        break;
    }
    if (digits().contains(c)) {
      scanner_.fail_at(first, "a character", "a back reference, which is not supported");
    }
    if (c == Scanner::kEnd || is_letter_or_digit(c)) {
      scanner_.fail_at(first, "a known escape", scanner_.from(first));
    }
    return one(c);
  }

  CodePoints read_class() {
    const std::size_t begin = scanner_.position();
    scanner_.take();
    const bool negated = scanner_.take_if("^");
    CodePoints set;
    // One or more characters; several cannot begin or end a range.
    const auto member = [this, negated] {
      if (scanner_.ended()) scanner_.fail("]");
      if (scanner_.starts("\\b")) {  // in a class it means backspace
        scanner_.take_if("\\b");
        return CodePoints{{8, 8}};
      }
      if (scanner_.starts("\\")) return read_escape(negated);
      const char32_t c = scanner_.take();
      return CodePoints{{c, c}};
    };
    const auto is_one = [](const CodePoints& set) {
      return set.ranges().size() == 1 && set.ranges().front().first == set.ranges().front().last;
    };
    while (!scanner_.starts("]")) {
      const std::size_t first = scanner_.position();
      const CodePoints low = member();
      if (!scanner_.starts("-") || scanner_.starts("-]")) {
        set.add(low);
        continue;
      }
      scanner_.take();
      const CodePoints high = member();
      if (!is_one(low) || !is_one(high) ||
          low.ranges().front().first > high.ranges().front().first) {
        scanner_.fail_at(first, "a range that grows", scanner_.from(first));
      }
      set.add(CodePointRange{low.ranges().front().first, high.ranges().front().first});
    }
    scanner_.take();
    if (negated) set = set.complement();
    if (set.empty()) scanner_.fail_at(begin, "a class with a character", scanner_.from(begin));
    return set;
  }

  Scanner scanner_;
  Anchors anchors_;
  GrammarParts& parts_;
  const std::function<int(const CodePoints&)>& character_;
};

}  // namespace

int regex_part(std::string_view text, Anchors anchors, GrammarParts& parts,
               const std::function<int(const CodePoints&)>& character, const char* operation) {
  return Reader(text, anchors, parts, character, operation).read();
}

CompiledGrammar read_regex(std::string_view text) {
  GrammarParts parts;
  const auto character = [&parts](const CodePoints& set) { return parts.character(set); };
  const int root = parts.declare("regular expression");
  parts.define(root, regex_part(text, Anchors::implied, parts, character, kOperation));
  return {parts, root, kOperation};
}

}  // namespace outrider
