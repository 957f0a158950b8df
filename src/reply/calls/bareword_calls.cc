// SPDX-License-Identifier: Apache-2.0
// call:N{k:v, ..} with bare keys, and texts between quotes that are special tokens (FunctionGemma,
// Gemma 4). A call is read completely and then translated.
#include <utility>

#include "reply/argument_schema.h"
#include "reply/calls/call_reader.h"
#include "reply/json_scanner.h"
#include "reply/json_words.h"

namespace outrider {
namespace {

// Translates an object into JSON. The reader has checked that brackets are balanced and nest no
// deeper than JsonScanner::kDeepest.
class BarewordObject {
 public:
  BarewordObject(std::string_view text, std::string_view quote, const Tool* tool)
      : text_(text), quote_(quote), tool_(tool) {}

  std::optional<std::string> json() {
    std::string out;
    if (!object(out, true) || at_ != text_.size()) return std::nullopt;
    return out;
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }
  bool take(char byte) {
    skip_blanks();
    if (!rest().starts_with(byte)) return false;
    ++at_;
    return true;
  }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  bool object(std::string& out, bool outermost) {
    if (!take('{')) return false;
    out += '{';
    for (bool first = true; !take('}'); first = false) {
      if (!first) {
        if (!take(',')) return false;
        out += ", ";
      }
      std::string key;
      if (!this->key(key)) return false;
      out += as_json_string(key) + ": ";
      if (!value(out, outermost ? argument_schema(tool_, key) : ArgumentSchema{})) return false;
    }
    out += '}';
    return true;
  }

  bool key(std::string& key) {
    skip_blanks();
    if (rest().starts_with(quote_)) {
      if (!quoted_text(key)) return false;
    } else if (rest().starts_with('"')) {
      std::string json;
      if (!json_string(json)) return false;
      const std::optional<std::string> text = text_of_string(json);
      if (!text) return false;
      key = *text;
    } else {
      const std::size_t n = rest().find_first_of(":{}[],");
      if (n == std::string_view::npos) return false;
      key = without_blanks(rest().substr(0, n));
      at_ += n;
    }
    return !key.empty() && take(':');
  }

  bool value(std::string& out, const ArgumentSchema& schema) {
    skip_blanks();
    if (rest().starts_with('{')) return object(out, false);
    if (rest().starts_with('[')) return list(out);
    if (rest().starts_with(quote_)) {
      std::string text;
      if (!quoted_text(text)) return false;
      out += as_json_string(text);
      return true;
    }
    if (rest().starts_with('"')) return json_string(out);
    const std::size_t n = rest().find_first_of(",{}[]");
    const std::string_view word = without_blanks(rest().substr(0, n));
    if (n == std::string_view::npos || word.empty()) return false;
    at_ += n;
    out += argument_value(word, schema);
    return true;
  }

  bool list(std::string& out) {
    ++at_;
    out += '[';
    for (bool first = true; !take(']'); first = false) {
      if (!first) {
        if (!take(',')) return false;
        out += ", ";
      }
      if (!value(out, {})) return false;
    }
    out += ']';
    return true;
  }

  bool quoted_text(std::string& text) {
    at_ += quote_.size();
    const std::size_t n = rest().find(quote_);
    if (n == std::string_view::npos) return false;
    text = rest().substr(0, n);
    at_ += n + quote_.size();
    return true;
  }

  bool json_string(std::string& out) {
    JsonScanner scanner;
    while (at_ < text_.size()) {
      const JsonScanner::Step step = scanner.push(text_[at_++], out);
      if (step == JsonScanner::Step::done) return true;
      if (step != JsonScanner::Step::more) return false;
    }
    return false;
  }

  std::string_view text_;
  std::string_view quote_;
  const Tool* tool_;
  std::size_t at_ = 0;
};

class BarewordCalls final : public CallReader {
 public:
  explicit BarewordCalls(const CallContext& context)
      : context_(context),
        call_({"call:"}),
        quote_({context.format->quote}),
        end_({context.format->end}) {}

  Step push(char byte, CallSink& sink) override {
    std::optional<std::size_t> found;
    switch (state_) {
      case State::start:
        if (is_blank(byte) && call_.held().empty()) return Step::more;
        if (!match(call_, byte, found)) return Step::stop;
        if (found) state_ = State::name;
        return Step::more;
      case State::name:
        if (byte != '{') {
          name_ += byte;
          return is_call_name(name_) ? Step::more : Step::stop;
        }
        if (name_.empty()) return Step::stop;
        state_ = State::object;
        return object_byte(byte, sink);
      case State::object:
        return object_byte(byte, sink);
      default:
        if (is_blank(byte) && end_.held().empty()) return Step::more;
        if (!match(end_, byte, found)) return Step::stop;
        return found ? Step::done : Step::more;
    }
  }

 private:
  enum class State { start, name, object, after };

  Step object_byte(char byte, CallSink& sink) {
    text_ += byte;
    if (in_json_string_) {  // there the model's quotes are plain text
      plain_byte(byte);
      return Step::more;
    }
    std::string plain;
    if (quote_.push(byte, plain)) in_text_ = !in_text_;
    if (in_text_) return Step::more;
    for (const char each : plain) {
      if (!plain_byte(each)) return Step::stop;
    }
    return open_.empty() ? end_call(sink) : Step::more;
  }

  // A byte outside of texts in the model's own quotes. Returns false if no object can continue so.
  bool plain_byte(char byte) {
    if (in_json_string_) {
      if (!std::exchange(escaped_, false)) {
        escaped_ = byte == '\\';
        in_json_string_ = byte != '"';
      }
      return true;
    }
    const bool value_may_begin = std::string_view(":,[{").find(before_) != std::string_view::npos;
    if (byte == '"' && value_may_begin) in_json_string_ = true;
    if (byte == '{' || byte == '[') {
      if (open_.size() == JsonScanner::kDeepest) return false;
      open_ += byte == '{' ? '}' : ']';
    } else if (byte == '}' || byte == ']') {
      if (open_.empty() || open_.back() != byte) return false;
      open_.pop_back();
    }
    if (!is_blank(byte)) before_ = byte;
    return true;
  }

  Step end_call(CallSink& sink) {
    const std::optional<std::string> object =
        BarewordObject(text_, context_.format->quote, context_.tools->find(name_)).json();
    if (!object) return Step::stop;
    sink.begin_call(name_, {});
    sink.add_arguments(*object);
    sink.end_call({});
    state_ = State::after;
    return Step::more;
  }

  CallContext context_;
  MarkerFinder call_;
  MarkerFinder quote_;
  MarkerFinder end_;
  State state_ = State::start;
  std::string name_;
  std::string text_;  // the object's text
  std::string open_;  // the closing brackets still expected
  bool in_text_ = false;
  bool in_json_string_ = false;
  bool escaped_ = false;
  char before_ = '\0';  // the last byte that was not a blank
};

}  // namespace

std::unique_ptr<CallReader> make_bareword_calls(const CallContext& context) {
  return std::make_unique<BarewordCalls>(context);
}

}  // namespace outrider
