// SPDX-License-Identifier: Apache-2.0
// Translates Oniguruma's Ruby syntax, used for patterns in tokenizer.json, into PCRE2's. They agree
// on nearly everything that these files use, except:
//   \s \S   White_Space in Oniguruma; PCRE2 adds U+180E
//   \w \W   in Oniguruma letters, marks, digits, letter numbers, connectors and some more
//   \b \B   between such characters and others
//   \v      the vertical tab in Oniguruma, vertical space in PCRE2
//   \p{..}  [:..:] see unicode_property.h; \pL is plain text in Oniguruma and is refused
//   \h \H   hexadecimal digits in Oniguruma, horizontal space in PCRE2
//   \uHHHH  only Oniguruma's
//   {,n}    at most n, in Oniguruma; plain text in PCRE2
//   {n,m}+  repeated once more in Oniguruma, possessive in PCRE2
//   (?m)    dot matches newline in Oniguruma, (?s) in PCRE2 (^ and $ work by line in Oniguruma
//           always, hence MULTILINE)
// Nested classes, class intersections and escapes that only PCRE2 has are refused: PCRE2 would read
// them differently.
#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "tokenizer/patterns/pattern.h"
#include "tokenizer/patterns/unicode_property.h"

namespace outrider {
namespace {

constexpr std::string_view kHex = "0-9a-fA-F";

class Translator {
 public:
  Translator(std::string_view pattern, std::string_view object)
      : pattern_(pattern), object_(object) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        begin_atom();
        escape(/*in_class=*/false);
      } else if (c == '[') {
        begin_atom();
        character_class();
      } else if (c == '(') {
        open_groups_.push_back(out_.size());
        group();
      } else if (c == ')') {
        if (!open_groups_.empty()) {
          atom_ = open_groups_.back();
          open_groups_.pop_back();
        }
        copy(1);
      } else if (c == '{') {
        interval();
      } else {
        if ((static_cast<unsigned char>(c) & 0xC0) != 0x80 && c != '*' && c != '+' && c != '?') {
          begin_atom();
        }
        copy(1);
      }
    }
    return std::move(out_);
  }

 private:
  void begin_atom() { atom_ = out_.size(); }
  char peek(std::size_t ahead) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  void copy(std::size_t n) {
    n = std::min(n, pattern_.size() - at_);
    out_.append(pattern_.substr(at_, n));
    at_ += n;
  }
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error("compile pattern", object_,
                std::string(what) + " is not supported, in \"" + std::string(pattern_) + "\"");
  }

  static constexpr std::size_t kShown = 80;  // bytes of a name shown in a message

  void put_class(std::string_view inside, bool negated, bool in_class) {
    if (!in_class) out_.append(negated ? "[^" : "[");
    out_.append(inside);
    if (!in_class) out_.append("]");
    at_ += 2;
  }

  void escape(bool in_class) {
    switch (const char kind = peek(1)) {
      case 's':
      case 'S':
        return property(find_unicode_property("space"), 2, kind == 'S', in_class);
      case 'w':
        return put_class(in_class ? kWordInClass : kWordAlone, false, in_class);
      case 'h':
        return put_class(kHex, false, in_class);
      case 'W':
      case 'H':
        if (in_class) refuse(std::string("\\") + kind + " within a character class");
        return put_class(kind == 'W' ? kWordAlone : kHex, true, in_class);
      case 'b':
      case 'B':
        if (in_class) break;
        return boundary(kind == 'B');
      case 'v':
        out_.append("\\x{b}");
        at_ += 2;
        return;
      case 'p':
      case 'P':
        return named_property(kind == 'P', in_class);
      case 'E':
      case 'L':
      case 'Q':
      case 'U':
      case 'V':
      case 'l':
        refuse(std::string("\\") + kind);
      case 'u': {
        const std::string_view digits = pattern_.substr(at_).substr(2, 4);
        for (const char digit : digits) {
          if (!std::isxdigit(static_cast<unsigned char>(digit))) refuse("\\u without four digits");
        }
        if (digits.size() != 4) refuse("\\u without four digits");
        out_.append("\\x{").append(digits).append("}");
        at_ += 6;
        return;
      }
      default:
        break;
    }
    // \x{..} and similar escapes are copied whole, so that their contents are not read as an
    // interval.
    const char kind = peek(1);
    copy(2);
    if (peek(0) == '{' && kind != '\\' && std::isalpha(static_cast<unsigned char>(kind))) {
      const std::size_t close = pattern_.find('}', at_);
      if (close != std::string_view::npos) copy(close + 1 - at_);
    }
  }

  // Between a word character and another one, or the text's end; negated, anywhere else.
  void boundary(bool negated) {
    const std::string word = "[" + std::string(kWordAlone) + "]";
    const char* const behind = negated ? "(?=" : "(?!";
    const char* const other = negated ? "(?!" : "(?=";
    out_ += "(?:(?<=" + word + ")" + behind + word + ")|(?<!" + word + ")" + other + word + "))";
    at_ += 2;
  }

  // \p{NAME}, \p{^NAME}, \P{NAME}
  void named_property(bool negated, bool in_class) {
    const std::size_t close = pattern_.find('}', at_);
    if (peek(2) != '{' || close == std::string_view::npos) refuse("\\p without {NAME}");
    std::string_view name = pattern_.substr(at_ + 3, close - at_ - 3);
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    property(find_unicode_property(name), close + 1 - at_, negated, in_class);
  }

  // The property named by the next n_bytes of the pattern; nullopt if unknown.
  void property(std::optional<UnicodeProperty> known, std::size_t n_bytes, bool negated,
                bool in_class) {
    const auto shown = [&] { return std::string(pattern_.substr(at_, std::min(n_bytes, kShown))); };
    if (!known) refuse(shown());
    if (negated && in_class && known->without.empty())
      refuse(shown() + " within a character class");
    at_ += n_bytes;
    if (!in_class && known->within == kWordInClass) known->within = kWordAlone;
    const bool complement = negated && !known->without.empty();
    const std::string_view inside = complement ? known->without : known->within;
    // A single property needs no class.
    const bool alone =
        !known->without.empty() && (inside.starts_with("\\p{") || inside.starts_with("\\P{"));
    if (in_class || alone) {
      out_ += inside;
    } else {
      out_ += negated && !complement ? "[^" : "[";
      out_.append(inside).append("]");
    }
  }

  void character_class() {
    copy(1);
    if (peek(0) == '^') copy(1);
    if (peek(0) == ']') copy(1);
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == ']') return copy(1);
      if (c == '\\') {
        escape(/*in_class=*/true);
      } else if (c == '[' && peek(1) == ':') {
        const std::size_t close = pattern_.find(":]", at_);
        if (close == std::string_view::npos) refuse("an open [:");
        const bool negated = peek(2) == '^';
        const std::string_view name = pattern_.substr(at_, close - at_).substr(negated ? 3 : 2);
        property(find_posix_class(name), close + 2 - at_, negated, true);
      } else if (c == '[') {
        refuse("a character class within a character class");
      } else if (c == '&' && peek(1) == '&') {
        refuse("&& within a character class");
      } else {
        copy(1);
      }
    }
  }

  // After an opening parenthesis: the letters of (?imx-imx: or (?imx-imx).
  void group() {
    copy(1);
    if (peek(0) != '?') return;
    std::size_t end = at_ + 1;
    while (end < pattern_.size() &&
           (std::isalpha(static_cast<unsigned char>(pattern_[end])) || pattern_[end] == '-')) {
      ++end;
    }
    if (end == pattern_.size() || (pattern_[end] != ':' && pattern_[end] != ')')) return;
    copy(1);
    for (; at_ < end; ++at_) out_.push_back(pattern_[at_] == 'm' ? 's' : pattern_[at_]);
  }

  void interval() {
    std::size_t end = at_ + 1;
    bool digits = false;
    bool comma = false;
    while (end < pattern_.size() && pattern_[end] != '}') {
      if (pattern_[end] == ',' && !comma) {
        comma = true;
      } else if (std::isdigit(static_cast<unsigned char>(pattern_[end]))) {
        digits = true;
      } else {
        break;
      }
      ++end;
    }
    if (end >= pattern_.size() || pattern_[end] != '}' || !digits) {  // plain text
      begin_atom();
      return copy(1);
    }
    copy(1);
    if (peek(0) == ',') out_.push_back('0');
    copy(end + 1 - at_);
    if (peek(0) == '+') {
      out_.insert(atom_, "(?:");
      out_.append(")");
      copy(1);
    }
  }

  std::string_view pattern_;
  std::string_view object_;
  std::size_t at_ = 0;
  std::string out_;
  std::size_t atom_ = 0;                  // where in out_ the last atom starts
  std::vector<std::size_t> open_groups_;  // where in out_ the open groups start
};

}  // namespace

std::string translate_pattern(std::string_view pattern, std::string_view object) {
  return Translator(pattern, object).run();
}

}  // namespace outrider
