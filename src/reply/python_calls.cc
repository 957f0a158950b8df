// Calls as Python writes them, as Gemma's documentation asks for them: [f(a=1, b="x"), g()], alone
// or in a fence of tool_code, where the list's brackets may be missing. A call is read whole and
// then translated.
#include <algorithm>
#include <cctype>
#include <utility>

#include "reply/call_reader.h"
#include "reply/json_scanner.h"
#include "reply/json_words.h"

namespace outrider {
namespace {

bool begins_name(char byte) {
  return std::isalpha(static_cast<unsigned char>(byte)) != 0 || byte == '_';
}
bool is_in_name(char byte) {
  return begins_name(byte) || std::isdigit(static_cast<unsigned char>(byte)) != 0 || byte == '.';
}

void append_utf8(unsigned code, std::string& out) {
  const auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

// Translates what stands between a call's parentheses into a JSON object. Brackets are balanced and
// no deeper than JsonScanner::kDeepest, which the reader has seen to.
class PythonArguments {
 public:
  PythonArguments(std::string_view text, const Tool* tool) : text_(text), tool_(tool) {}

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
    while (at_ < text_.size() && is_in_name(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // "key=", or nothing is read.
  std::optional<std::string> keyword() {
    const std::size_t begin = at_;
    if (begins_name(peek())) {
      const std::string_view key = word();
      skip_blanks();
      if (take('=')) return std::string(key);
    }
    at_ = begin;
    return std::nullopt;
  }

  // What the tool's schema names as its n-th argument.
  std::optional<std::string> name_of_place(std::size_t n) const {
    if (tool_ == nullptr) return std::nullopt;
    const auto properties = tool_->parameters.find("properties");
    if (properties == tool_->parameters.end() || !properties->is_object() ||
        n >= properties->size()) {
      return std::nullopt;
    }
    return std::next(properties->begin(), static_cast<std::ptrdiff_t>(n)).key();
  }

  // Blanks behind the value are read, too.
  bool value(std::string& out) {
    const char byte = peek();
    bool good = false;
    if (byte == '"' || byte == '\'') {
      good = string(out);
    } else if (byte == '[' || byte == '(') {
      good = list(byte == '[' ? ']' : ')', out);
    } else if (byte == '{') {
      good = dictionary(out);
    } else if (begins_name(byte)) {
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
        return code(4, out);
      case 'U':
        return code(8, out);
      case '\n':
        return true;  // the line goes on
      case '\\':
      case '\'':
      case '"':
        out += kind;
        return true;
      default:
        break;
    }
    const std::size_t meant = kNames.find(kind);
    if (meant != std::string_view::npos) {
      out += kMeant[meant];
    } else {
      out += '\\';  // as in Python, an unknown escape stands for itself
      out += kind;
    }
    return true;
  }

  bool code(std::size_t n_digits, std::string& out) {
    unsigned value = 0;
    for (std::size_t i = 0; i < n_digits; ++i, ++at_) {
      if (at_ == text_.size() || std::isxdigit(static_cast<unsigned char>(text_[at_])) == 0) {
        return false;
      }
      const char digit = text_[at_];
      const int add = digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10;
      value = value * 16 + static_cast<unsigned>(add);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return false;
    append_utf8(value, out);
    return true;
  }

  std::string_view text_;
  const Tool* tool_;
  std::size_t at_ = 0;
};

class PythonCalls final : public CallReader {
 public:
  explicit PythonCalls(const CallContext& context)
      : context_(context), end_({context.format->end}) {}

  Step push(char byte, CallSink& sink) override {
    switch (state_) {
      case State::name:
        return name_byte(byte);
      case State::arguments:
        return argument_byte(byte, sink);
      default:
        break;
    }
    if (is_blank(byte) && end_.held().empty()) return Step::more;
    switch (state_) {
      case State::start:
        if (byte == '[') {
          in_list_ = true;
          return go(State::item);
        }
        if (context_.is_bare) return Step::stop;
        [[fallthrough]];
      case State::item:
        return begin_name(byte);
      case State::after_call:
        if (in_list_) {
          if (byte == ',') return go(State::item);
          if (byte != ']') return Step::stop;
          state_ = State::after_list;
          return Step::whole;
        }
        if (end_.held().empty() && begins_name(byte)) return begin_name(byte);
        [[fallthrough]];
      default:
        break;
    }
    if (context_.is_bare) return Step::stop;
    std::optional<std::size_t> found;
    if (!match(end_, byte, found)) return Step::stop;
    return found ? Step::done : Step::more;
  }

 private:
  enum class State { start, item, name, arguments, after_call, after_list };

  Step go(State next) {
    state_ = next;
    return Step::more;
  }

  Step begin_name(char byte) {
    if (!begins_name(byte)) return Step::stop;
    name_.assign(1, byte);
    return go(State::name);
  }

  Step name_byte(char byte) {
    if (is_in_name(byte)) {
      name_ += byte;
      return name_.size() > kLongestName_bytes ? Step::stop : Step::more;
    }
    const ToolSet& tools = *context_.tools;
    tool_ = tools.find(name_);
    const bool must_be_known = context_.is_bare && !tools.empty();
    if (byte != '(' || (must_be_known && tool_ == nullptr)) return Step::stop;
    text_.clear();
    open_.clear();
    quote_ = '\0';
    return go(State::arguments);
  }

  Step argument_byte(char byte, CallSink& sink) {
    if (quote_ != '\0') {
      if (!std::exchange(escaped_, false)) {
        if (byte == '\\') escaped_ = true;
        if (byte == quote_) quote_ = '\0';
      }
    } else if (byte == '"' || byte == '\'') {
      quote_ = byte;
    } else if (byte == '(' || byte == '[' || byte == '{') {
      if (open_.size() == JsonScanner::kDeepest) return Step::stop;
      open_ += byte == '(' ? ')' : byte == '[' ? ']' : '}';
    } else if (byte == ')' && open_.empty()) {
      return end_call(sink);
    } else if (byte == ')' || byte == ']' || byte == '}') {
      if (open_.empty() || open_.back() != byte) return Step::stop;
      open_.pop_back();
    }
    text_ += byte;
    return Step::more;
  }

  Step end_call(CallSink& sink) {
    const std::optional<std::string> object = PythonArguments(text_, tool_).object();
    if (!object) return Step::stop;
    sink.begin_call(name_, {});
    sink.add_arguments(*object);
    sink.end_call({});
    return go(State::after_call);
  }

  CallContext context_;
  MarkerFinder end_;
  State state_ = State::start;
  bool in_list_ = false;
  std::string name_;
  const Tool* tool_ = nullptr;
  std::string text_;  // between the parentheses
  std::string open_;  // the closing brackets that are due
  char quote_ = '\0';
  bool escaped_ = false;
};

}  // namespace

std::unique_ptr<CallReader> make_python_calls(const CallContext& context) {
  return std::make_unique<PythonCalls>(context);
}

}  // namespace outrider
