// SPDX-License-Identifier: Apache-2.0
// N, then <arg_key>K</arg_key> <arg_value>TEXT</arg_value> for every argument (GLM from 4.5 on; up
// to 4.6 each on its own line). Texts become JSON values by the tool's schema. Those that can only
// be strings are passed on as they arrive, with all blanks. Others are trimmed, as in vLLM's
// parser, which the model's authors refer to.
#include <utility>

#include "reply/calls/call_reader.h"
#include "reply/calls/text_arguments.h"
#include "reply/json_words.h"

namespace outrider {
namespace {

class PairedCalls final : public CallReader {
 public:
  explicit PairedCalls(const CallContext& context)
      : context_(context),
        json_(make_json_calls(context)),
        next_({context.format->key.begin, context.format->end}),
        key_end_({context.format->key.end}),
        value_begin_({context.format->value.begin}),
        value_end_({context.format->value.end}) {}

  Step push(char byte, CallSink& sink) override {
    std::optional<std::size_t> found;
    switch (state_) {
      case State::start:
        if (is_blank(byte)) return Step::more;
        if (byte == '{' || byte == '[') {  // some models fall back to Hermes' form
          state_ = State::json;
          return json_->push(byte, sink);
        }
        state_ = State::name;
        return name_byte(byte, sink);
      case State::json:
        return json_->push(byte, sink);
      case State::name:
        return name_byte(byte, sink);
      case State::body:
        if (is_blank(byte) && next_.held().empty()) return Step::more;
        if (!match(next_, byte, found)) return Step::stop;
        return found ? at_marker(*found, sink) : Step::more;
      case State::key:
        return key_byte(byte);
      case State::before_value:
        if (is_blank(byte) && value_begin_.held().empty()) return Step::more;
        if (!match(value_begin_, byte, found)) return Step::stop;
        if (!found) return Step::more;
        begin_arguments(sink);
        arguments_.begin_value(key_, sink);
        return go(State::value);
      default:
        return value_byte(byte, sink);
    }
  }

 private:
  enum class State { start, json, name, body, key, before_value, value };

  Step go(State next) {
    state_ = next;
    return Step::more;
  }

  // The line with the name, or the text before the first marker.
  Step name_byte(char byte, CallSink& sink) {
    if (byte == '\n' && next_.held().empty()) return is_named() ? go(State::body) : Step::stop;
    const std::optional<std::size_t> found = next_.push(byte, name_);
    if (name_.size() > kLongestName_bytes) return Step::stop;
    if (!found) return Step::more;
    return is_named() ? at_marker(*found, sink) : Step::stop;
  }

  bool is_named() {
    name_ = without_blanks(name_);
    return is_call_name(name_);
  }

  Step at_marker(std::size_t marker, CallSink& sink) {
    if (marker == 0) {
      key_.clear();
      return go(State::key);
    }
    begin_arguments(sink);
    arguments_.end(sink);
    sink.end_call({});
    return Step::done;
  }

  Step key_byte(char byte) {
    const std::optional<std::size_t> found = key_end_.push(byte, key_);
    if (key_.size() > kLongestName_bytes) return Step::stop;
    if (!found) return Step::more;
    key_ = without_blanks(key_);
    return key_.empty() ? Step::stop : go(State::before_value);
  }

  void begin_arguments(CallSink& sink) {
    if (std::exchange(begun_, true)) return;
    sink.begin_call(name_, {});
    arguments_.begin(context_.tools->find(name_), sink);
  }

  Step value_byte(char byte, CallSink& sink) {
    std::string text;
    const bool ends = value_end_.push(byte, text).has_value();
    arguments_.add(text, sink);
    if (!ends) return Step::more;
    arguments_.end_value(sink);
    return go(State::body);
  }

  CallContext context_;
  std::unique_ptr<CallReader> json_;
  MarkerFinder next_;  // a key, or the end of the call
  MarkerFinder key_end_;
  MarkerFinder value_begin_;
  MarkerFinder value_end_;
  State state_ = State::start;
  std::string name_;
  std::string key_;
  bool begun_ = false;
  TextArguments arguments_{/*strips=*/true};
};

}  // namespace

std::unique_ptr<CallReader> make_paired_calls(const CallContext& context) {
  return std::make_unique<PairedCalls>(context);
}

}  // namespace outrider
