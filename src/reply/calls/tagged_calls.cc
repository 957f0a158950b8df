// SPDX-License-Identifier: Apache-2.0
// <function=N>, then <parameter=K>TEXT</parameter> for every argument (Qwen3-Coder) or one JSON
// object (Functionary), then </function>. Texts become JSON values by the tool's schema; those that
// can only be strings are passed on as they arrive.
#include <utility>

#include "reply/calls/call_reader.h"
#include "reply/calls/text_arguments.h"
#include "reply/json_scanner.h"
#include "reply/json_words.h"

namespace outrider {
namespace {

class TaggedCalls final : public CallReader {
 public:
  explicit TaggedCalls(const CallContext& context)
      : context_(context),
        json_(make_json_calls(context)),
        function_({kFunction}),
        body_({"<parameter=", "</function>"}),
        value_({"</parameter>"}),
        after_({kFunction, context.format->end}) {
    if (context.format->begins[context.begin] == kFunction) state_ = State::name;
  }

  Step push(char byte, CallSink& sink) override {
    std::optional<std::size_t> found;
    switch (state_) {
      case State::start:
        if (function_.held().empty()) {
          if (is_blank(byte)) return Step::more;
          if (byte == '{' || byte == '[') {  // some models fall back to Hermes' form
            state_ = State::json;
            return json_->push(byte, sink);
          }
        }
        if (!match(function_, byte, found)) return Step::stop;
        return found ? go(State::name) : Step::more;
      case State::json:
        return json_->push(byte, sink);
      case State::name:
        return word_byte(name_, byte, State::body);
      case State::body:
        if (body_.held().empty()) {
          if (is_blank(byte)) return Step::more;
          if (byte == '{' && !begun_) return begin_object(byte, sink);
        }
        if (!match(body_, byte, found)) return Step::stop;
        if (!found) return Step::more;
        return *found == 0 ? begin_key(sink) : end_function(sink);
      case State::key:
        if (word_byte(key_, byte, State::value) == Step::stop) return Step::stop;
        if (state_ == State::value) begin_value(sink);
        return Step::more;
      case State::value:
        return value_byte(byte, sink);
      case State::object:
        return object_byte(byte, sink);
      case State::closing:
        if (is_blank(byte) && body_.held().empty()) return Step::more;
        if (!match(body_, byte, found)) return Step::stop;
        if (!found) return Step::more;
        return *found == 1 ? end_function(sink) : Step::stop;
      default:  // after
        if (is_blank(byte) && after_.held().empty()) return Step::more;
        if (!match(after_, byte, found)) return Step::stop;
        if (!found) return Step::more;
        if (*found == 1) return Step::done;
        name_.clear();
        begun_ = false;
        return go(State::name);
    }
  }

 private:
  enum class State { start, json, name, body, key, value, object, closing, after };
  static constexpr const char* kFunction = "<function=";

  Step go(State next) {
    state_ = next;
    return Step::more;
  }

  Step word_byte(std::string& word, char byte, State next) {
    if (byte == '>') return word.empty() ? Step::stop : go(next);
    word += byte;
    return is_call_name(word) ? Step::more : Step::stop;
  }

  Step begin_object(char byte, CallSink& sink) {
    begun_ = true;
    sink.begin_call(name_, {});
    scanner_ = {};
    is_object_ = true;
    state_ = State::object;
    return object_byte(byte, sink);
  }

  Step object_byte(char byte, CallSink& sink) {
    std::string piece;
    const JsonScanner::Step step = scanner_.push(byte, piece);
    if (step == JsonScanner::Step::wrong) return Step::stop;
    sink.add_arguments(piece);
    return step == JsonScanner::Step::done ? go(State::closing) : Step::more;
  }

  void begin_arguments(CallSink& sink) {
    if (std::exchange(begun_, true)) return;
    sink.begin_call(name_, {});
    arguments_.begin(context_.tools->find(name_), sink);
    is_object_ = false;
  }

  Step begin_key(CallSink& sink) {
    begin_arguments(sink);
    key_.clear();
    return go(State::key);
  }

  void begin_value(CallSink& sink) {
    arguments_.begin_value(key_, sink);
    at_value_begin_ = true;
    newline_due_ = false;
  }

  // One newline after the opening tag and one before the closing tag belong to the tags.
  Step value_byte(char byte, CallSink& sink) {
    std::string freed;
    const bool ends = value_.push(byte, freed).has_value();
    std::string text;
    for (const char each : freed) {
      if (std::exchange(at_value_begin_, false) && each == '\n') continue;
      if (std::exchange(newline_due_, each == '\n')) text += '\n';
      if (each != '\n') text += each;
    }
    arguments_.add(text, sink);
    if (!ends) return Step::more;
    arguments_.end_value(sink);
    return go(State::body);
  }

  Step end_function(CallSink& sink) {
    begin_arguments(sink);
    if (!is_object_) arguments_.end(sink);
    sink.end_call({});
    return go(State::after);
  }

  CallContext context_;
  std::unique_ptr<CallReader> json_;
  MarkerFinder function_;
  MarkerFinder body_;
  MarkerFinder value_;
  MarkerFinder after_;
  State state_ = State::start;
  JsonScanner scanner_;
  std::string name_;
  std::string key_;
  bool begun_ = false;
  bool is_object_ = false;  // the arguments came as JSON
  TextArguments arguments_{/*strips=*/false};
  bool at_value_begin_ = false;
  bool newline_due_ = false;  // read but not passed on yet
};

}  // namespace

std::unique_ptr<CallReader> make_tagged_calls(const CallContext& context) {
  return std::make_unique<TaggedCalls>(context);
}

}  // namespace outrider
