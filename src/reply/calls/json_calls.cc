// SPDX-License-Identifier: Apache-2.0
// {"name": N, "arguments": {..}}: one, several separated by blanks, commas or semicolons, or a
// list.
#include <algorithm>
#include <utility>

#include "reply/calls/call_reader.h"
#include "reply/json_scanner.h"
#include "reply/json_words.h"

namespace outrider {
namespace {

class JsonCalls final : public CallReader {
 public:
  explicit JsonCalls(const CallContext& context) : context_(context), end_({context.format->end}) {}

  Step push(char byte, CallSink& sink) override {
    switch (state_) {
      case State::in_key:
        return key_byte(byte);
      case State::in_value:
        return value_byte(byte, sink);
      case State::after_item:
        if (!end_.held().empty() || in_list_) break;
        if (byte == ',' || byte == ';') return go(State::item);
        if (byte == '{') return begin_object();
        break;
      default:
        break;
    }
    if (is_blank(byte) && end_.held().empty()) return Step::more;
    switch (state_) {
      case State::start:
        if (byte == '[' && !context_.is_bare) {
          in_list_ = true;
          return go(State::item);
        }
        [[fallthrough]];
      case State::item:
        return byte == '{' ? begin_object() : Step::stop;
      case State::first_key:
        if (byte == '}') return end_object(sink);
        [[fallthrough]];
      case State::key:
        if (byte != '"') return Step::stop;
        begin_text();
        state_ = State::in_key;
        return key_byte(byte);
      case State::colon:
        return byte == ':' ? go(State::value) : Step::stop;
      case State::value:
        return begin_value(byte, sink);
      case State::separator:
        if (byte == ',') return go(State::key);
        return byte == '}' ? end_object(sink) : Step::stop;
      case State::after_item:
        if (!in_list_) return match_end(byte);
        if (byte == ',') return go(State::item);
        if (byte != ']') return Step::stop;
        state_ = State::after_list;
        return Step::whole;
      default:
        return match_end(byte);
    }
  }

 private:
  enum class State {
    start,
    item,
    first_key,
    key,
    in_key,
    colon,
    value,
    in_value,
    separator,
    after_item,
    after_list,
  };
  enum class Role { name, arguments, arguments_as_text, id, other };

  Step go(State next) {
    state_ = next;
    return Step::more;
  }

  Step match_end(char byte) {
    std::optional<std::size_t> found;
    if (!match(end_, byte, found)) return Step::stop;
    return found ? Step::done : Step::more;
  }

  Step begin_object() {
    call_ = {};
    return go(State::first_key);
  }

  void begin_text() {
    scanner_ = {};
    text_.clear();
  }

  Step key_byte(char byte) {
    switch (scanner_.push(byte, text_)) {
      case JsonScanner::Step::more:
        return Step::more;
      case JsonScanner::Step::done:
        break;
      default:
        return Step::stop;
    }
    const std::optional<std::string> key = text_of_string(text_);
    if (!key) return Step::stop;
    const CallFormat& format = *context_.format;
    if (*key == format.name_key || *key == "name") {
      role_ = Role::name;
    } else if (*key == format.arguments_key || *key == "arguments" || *key == "parameters") {
      role_ = Role::arguments;
    } else if (*key == "id" || *key == "tool_call_id") {
      role_ = Role::id;
    } else if (context_.is_bare && *key != "type") {
      return Step::stop;  // other JSON is an answer
    } else {
      role_ = Role::other;
    }
    return go(State::colon);
  }

  Step begin_value(char byte, CallSink& sink) {
    begin_text();
    if (role_ == Role::name && (call_.has_name || byte != '"')) return Step::stop;
    if (role_ == Role::arguments) {
      if (call_.has_arguments) return Step::stop;
      if (byte == '{') {
        call_.has_arguments = true;
        begin_call_if_known(sink);
      } else if (byte == '"' || byte == 'n') {
        role_ = Role::arguments_as_text;
      } else {
        return Step::stop;
      }
    }
    state_ = State::in_value;
    return value_byte(byte, sink);
  }

  Step value_byte(char byte, CallSink& sink) {
    std::string piece;
    const JsonScanner::Step step = scanner_.push(byte, piece);
    if (step == JsonScanner::Step::wrong) return Step::stop;
    if (role_ != Role::arguments) {
      if (role_ != Role::other) text_ += piece;
    } else if (call_.begun) {
      sink.add_arguments(piece);
    } else {
      call_.held_arguments += piece;
    }
    if (step == JsonScanner::Step::more) return Step::more;
    if (!end_value(sink)) return Step::stop;
    state_ = State::separator;
    return step == JsonScanner::Step::done ? Step::more : push(byte, sink);
  }

  // Returns false if the key does not allow that value.
  bool end_value(CallSink& sink) {
    switch (role_) {
      case Role::name: {
        std::optional<std::string> name = text_of_string(text_);
        if (!name || !is_call_name(*name)) return false;
        const bool must_be_known = context_.is_bare && !context_.tools->empty();
        if (must_be_known && context_.tools->find(*name) == nullptr) return false;
        call_.name = std::move(*name);
        call_.has_name = true;
        break;
      }
      case Role::id:
        call_.id = text_of_string(text_).value_or(text_);
        if (call_.id.size() > kLongestName_bytes) return false;
        break;
      case Role::arguments_as_text: {
        std::optional<std::string> object = "{}";  // for null
        if (text_ != "null") object = json_value(text_of_string(text_).value_or(""));
        if (!object || !object->starts_with('{')) return false;
        call_.has_arguments = true;
        call_.held_arguments = std::move(*object);
        break;
      }
      default:
        break;
    }
    begin_call_if_known(sink);
    return true;
  }

  void begin_call_if_known(CallSink& sink) {
    if (call_.begun || !call_.has_name || !call_.has_arguments) return;
    call_.begun = true;
    sink.begin_call(call_.name, call_.id);
    call_.id.clear();
    if (!call_.held_arguments.empty()) sink.add_arguments(call_.held_arguments);
  }

  Step end_object(CallSink& sink) {
    if (!call_.has_name) return Step::stop;
    if (!call_.has_arguments) {
      // Without a marker, a name alone is not a call.
      if (context_.is_bare) return Step::stop;
      call_.has_arguments = true;
      call_.held_arguments = "{}";
      begin_call_if_known(sink);
    }
    sink.end_call(call_.id);
    return go(State::after_item);
  }

  struct Call {
    std::string name = {};
    std::string id = {};
    std::string held_arguments = {};  // until the name is known
    bool has_name = false;
    bool has_arguments = false;  // or whether they have begun
    bool begun = false;
  };

  CallContext context_;
  MarkerFinder end_;
  State state_ = State::start;
  bool in_list_ = false;
  Role role_ = Role::other;
  JsonScanner scanner_;
  std::string text_;  // of the current key or value
  Call call_;
};

}  // namespace

std::unique_ptr<CallReader> make_json_calls(const CallContext& context) {
  return std::make_unique<JsonCalls>(context);
}

}  // namespace outrider
