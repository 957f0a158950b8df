// SPDX-License-Identifier: Apache-2.0
// Calls in Python's syntax: [f(a=1, b="x"), g()] alone (as Gemma's documentation asks for) or
// between markers (LFM2), or one per line (OLMo 3; in a tool_code fence). Between markers they may
// be JSON instead. A call is read completely and then translated.
#include <utility>

#include "reply/calls/call_reader.h"
#include "reply/calls/python_literals.h"
#include "reply/json_scanner.h"
#include "reply/json_words.h"

namespace outrider {
namespace {

class PythonCalls final : public CallReader {
 public:
  explicit PythonCalls(const CallContext& context)
      : context_(context), json_(make_json_calls(context)), end_({context.format->end}) {}

  Step push(char byte, CallSink& sink) override {
    switch (state_) {
      case State::name:
        return name_byte(byte);
      case State::arguments:
        return argument_byte(byte, sink);
      case State::json:
        return json_->push(byte, sink);
      default:
        break;
    }
    if (is_blank(byte) && end_.held().empty()) return Step::more;
    switch (state_) {
      case State::start:
        if (byte == '[') {
          in_list_ = true;
          return go(State::first_item);
        }
        if (context_.is_bare) return Step::stop;
        if (byte == '{') return begin_json(byte, sink);
        return begin_name(byte);
      case State::first_item:
        if (byte == '{' && !context_.is_bare) return begin_json(byte, sink);
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
        if (end_.held().empty() && begins_python_name(byte)) return begin_name(byte);
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
  enum class State { start, first_item, item, name, arguments, json, after_call, after_list };

  Step go(State next) {
    state_ = next;
    return Step::more;
  }

  // The same calls as JSON, which a system message may ask for.
  Step begin_json(char byte, CallSink& sink) {
    state_ = State::json;
    if (in_list_) json_->push('[', sink);
    return json_->push(byte, sink);
  }

  Step begin_name(char byte) {
    if (!begins_python_name(byte)) return Step::stop;
    name_.assign(1, byte);
    return go(State::name);
  }

  Step name_byte(char byte) {
    if (is_in_python_name(byte)) {
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
    const std::optional<std::string> object = object_of_python(text_, tool_);
    if (!object) return Step::stop;
    sink.begin_call(name_, {});
    sink.add_arguments(*object);
    sink.end_call({});
    return go(State::after_call);
  }

  CallContext context_;
  std::unique_ptr<CallReader> json_;
  MarkerFinder end_;
  State state_ = State::start;
  bool in_list_ = false;
  std::string name_;
  const Tool* tool_ = nullptr;
  std::string text_;  // between the parentheses
  std::string open_;  // the closing brackets still expected
  char quote_ = '\0';
  bool escaped_ = false;
};

}  // namespace

std::unique_ptr<CallReader> make_python_calls(const CallContext& context) {
  return std::make_unique<PythonCalls>(context);
}

}  // namespace outrider
