// SPDX-License-Identifier: Apache-2.0
#include "reply/calls/python_literals.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "grammar/code_points.h"
#include "reply/argument_schema.h"
#include "reply/json_scanner.h"
#include "reply/json_words.h"

namespace outrider {
namespace {

// Reads literals from the beginning of the text and writes JSON.
class PythonReader {
 public:
  PythonReader(std::string_view text, const Tool* tool) : text_(text), tool_(tool) {}

  std::optional<std::string> only_value() {
    std::string out;
    skip_blanks();
    if (!value(out) || at_ != text_.size()) return std::nullopt;
    return out;
  }

  // A call's arguments.
  std::optional<std::string> object() {
    std::string out = "{";
    std::size_t n = 0;
    for (skip_blanks(); at_ < text_.size(); ++n) {
      std::optional<std::string> key = keyword();
      if (!key) key = name_of_place(n);
      if (!key) return std::nullopt;
      if (n > 0) out += ", ";
      out += as_json_string(*key) + ": ";
      if (!value(out)) return std::nullopt;
      if (at_ < text_.size() && !take(',')) return std::nullopt;
    }
    return out += '}';
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool take(char byte) {
    if (at_ == text_.size() || peek() != byte) return false;
    ++at_;
    skip_blanks();
    return true;
  }

  std::string_view word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_in_python_name(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // Reads "key=", or nothing.
  std::optional<std::string> keyword() {
    const std::size_t begin = at_;
    if (begins_python_name(peek())) {
      const std::string_view key = word();
      skip_blanks();
      if (take('=')) return std::string(key);
    }
    at_ = begin;
    return std::nullopt;
  }

  // The name of the n-th argument in the tool's schema.
  std::optional<std::string> name_of_place(std::size_t n) const {
    if (tool_ == nullptr) return std::nullopt;
    const auto& parameters = *parameters_schema(*tool_).schema;
    const auto properties = parameters.find("properties");
    if (properties == parameters.end() || !properties->is_object() || n >= properties->size()) {
      return std::nullopt;
    }
    return std::next(properties->begin(), static_cast<std::ptrdiff_t>(n)).key();
  }

  // Also skips blanks after the value.
  bool value(std::string& out) {
    const char byte = peek();
    bool good = false;
    if (byte == '"' || byte == '\'') {
      good = string(out);
    } else if (byte == '[' || byte == '(' || byte == '{') {
      if (depth_ == JsonScanner::kDeepest) return false;
      ++depth_;
      good = byte == '{' ? dictionary(out) : list(byte == '[' ? ']' : ')', out);
      --depth_;
    } else if (begins_python_name(byte)) {
      good = constant(out);
    } else {
      good = number(out);
    }
    skip_blanks();
    return good;
  }

  bool constant(std::string& out) {
    const std::string_view name = word();
    if (name == "True" || name == "true") {
      out += "true";
    } else if (name == "False" || name == "false") {
      out += "false";
    } else if (name == "None" || name == "null") {
      out += "null";
    } else {
      return false;
    }
    return true;
  }

  bool number(std::string& out) {
    std::string digits;
    for (; at_ < text_.size(); ++at_) {
      const char byte = text_[at_];
      const bool fits = std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '.' ||
                        byte == '-' || byte == '+' || byte == '_';
      if (!fits) break;
      if (byte != '_') digits += byte;
    }
    if (digits.ends_with('.')) digits += '0';
    if (digits.starts_with('.')) digits.insert(0, 1, '0');
    const std::optional<std::string> json = json_value(digits);
    if (!json) return false;
    out += *json;
    return true;
  }

  bool list(char closing, std::string& out) {
    ++at_;
    skip_blanks();
    out += '[';
    for (bool first = true; !take_closing(closing); first = false) {
      if (!first) out += ", ";
      if (!value(out)) return false;
      if (peek() != closing && !take(',')) return false;
    }
    out += ']';
    return true;
  }

  bool dictionary(std::string& out) {
    ++at_;
    skip_blanks();
    out += '{';
    for (bool first = true; !take_closing('}'); first = false) {
      if (!first) out += ", ";
      if ((peek() != '"' && peek() != '\'') || !string(out)) return false;
      skip_blanks();
      if (!take(':')) return false;
      out += ": ";
      if (!value(out)) return false;
      if (peek() != '}' && !take(',')) return false;
    }
    out += '}';
    return true;
  }

  bool take_closing(char closing) {
    if (at_ == text_.size() || peek() != closing) return false;
    ++at_;
    return true;
  }

  bool string(std::string& out) {
    const char quote = text_[at_++];
    std::string spelled;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] != '\\') {
        spelled += text_[at_++];
      } else if (!escape(spelled)) {
        return false;
      }
    }
    if (at_ == text_.size()) return false;
    ++at_;
    out += as_json_string(spelled);
    return true;
  }

  bool escape(std::string& out) {
    if (++at_ == text_.size()) return false;
    const char kind = text_[at_++];
    constexpr std::string_view kNames = "ntrbf0";
    constexpr std::string_view kMeant("\n\t\r\b\f\0", 6);
    switch (kind) {
      case 'x':
        return code(2, out);
      case 'u':
        return surrogate_pair(out) || code(4, out);
      case 'U':
        return code(8, out);
      case '\n':
        return true;  // line continuation
      case '\\':
      case '\'':
      case '"':
      case '/':  // JSON's escape, which models use as well; in Python it would mean both characters
        out += kind;
        return true;
      default:
        break;
    }
    const std::size_t meant = kNames.find(kind);
    if (meant != std::string_view::npos) {
      out += kMeant[meant];
    } else {
      out += '\\';  // as in Python, an unknown escape is kept
      out += kind;
    }
    return true;
  }

  std::optional<unsigned> hex(std::size_t n_digits) {
    unsigned value = 0;
    for (std::size_t i = 0; i < n_digits; ++i, ++at_) {
      if (at_ == text_.size() || std::isxdigit(static_cast<unsigned char>(text_[at_])) == 0) {
        return std::nullopt;
      }
      const char digit = text_[at_];
      const int add = digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10;
      value = value * 16 + static_cast<unsigned>(add);
    }
    return value;
  }

  // Two surrogates, with which JSON writes one character: "XXXX\\uXXXX" after "\\u". Reads nothing
  // if there are not two.
  bool surrogate_pair(std::string& out) {
    const std::size_t begin = at_;
    const std::optional<unsigned> high = hex(4);
    std::optional<unsigned> low;
    if (high && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      low = hex(4);
    }
    if (low && *high >= 0xD800 && *high < 0xDC00 && *low >= 0xDC00 && *low < 0xE000) {
      append_character(0x10000 + ((*high - 0xD800) << 10) + (*low - 0xDC00), out);
      return true;
    }
    at_ = begin;
    return false;
  }

  bool code(std::size_t n_digits, std::string& out) {
    const std::optional<unsigned> read = hex(n_digits);
    if (!read) return false;
    const unsigned value = *read;
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return false;
    append_character(value, out);
    return true;
  }

  std::string_view text_;
  const Tool* tool_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
};

}  // namespace

bool begins_python_name(char byte) {
  return std::isalpha(static_cast<unsigned char>(byte)) != 0 || byte == '_';
}

bool is_in_python_name(char byte) {
  return begins_python_name(byte) || std::isdigit(static_cast<unsigned char>(byte)) != 0 ||
         byte == '.' || byte == '-';
}

bool is_python_name(std::string_view text) {
  return !text.empty() && begins_python_name(text.front()) &&
         std::all_of(text.begin(), text.end(), is_in_python_name);
}

std::optional<std::string> object_of_python(std::string_view arguments, const Tool* tool) {
  return PythonReader(arguments, tool).object();
}

std::optional<std::string> json_of_python(std::string_view literal) {
  return PythonReader(literal, nullptr).only_value();
}

}  // namespace outrider
