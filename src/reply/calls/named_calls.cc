// SPDX-License-Identifier: Apache-2.0
// N[ARGS]{..}, N[CALL_ID]ID[ARGS]{..} (Mistral, from Small 3.2 on), or the earlier JSON form. Each
// call has a marker of its own.
#include "reply/calls/call_reader.h"
#include "reply/calls/json_arguments.h"
#include "reply/json_scanner.h"
#include "reply/json_words.h"

namespace outrider {
namespace {

class NamedCalls final : public CallReader {
 public:
  explicit NamedCalls(const CallContext& context)
      : json_(make_json_calls(context)),
        separators_({context.format->separator, context.format->id_separator}) {}

  Step push(char byte, CallSink& sink) override {
    switch (state_) {
      case State::start:
        if (is_blank(byte)) return Step::more;
        if (byte == '[' || byte == '{') {
          state_ = State::json;
          return json_->push(byte, sink);
        }
        state_ = State::name;
        return word_byte(name_, byte, sink);
      case State::json:
        return json_->push(byte, sink);
      case State::name:
        return word_byte(name_, byte, sink);
      case State::id:
        return word_byte(id_, byte, sink);
      case State::before_arguments:
        if (is_blank(byte)) return Step::more;
        return byte == '{' ? begin_arguments(byte, sink) : Step::stop;
      case State::arguments:
        return argument_byte(byte, sink);
      default:
        return is_blank(byte) ? Step::more : Step::stop;
    }
  }

 private:
  enum class State { start, json, name, id, before_arguments, arguments, after };

  // A byte of the name or the identifier. A brace ends it even if the separator was not shown.
  Step word_byte(std::string& word, char byte, CallSink& sink) {
    if (byte == '{' && separators_.held().empty()) return begin_arguments(byte, sink);
    if (byte == '\n') return Step::stop;
    const std::optional<std::size_t> found = separators_.push(byte, word);
    if (word.size() > kLongestName_bytes) return Step::stop;
    if (!found) return Step::more;
    state_ = *found == 0 ? State::before_arguments : State::id;
    return Step::more;
  }

  Step begin_arguments(char byte, CallSink& sink) {
    const std::string_view name = without_blanks(name_);
    if (!is_call_name(name)) return Step::stop;
    sink.begin_call(name, without_blanks(id_));
    state_ = State::arguments;
    return argument_byte(byte, sink);
  }

  Step argument_byte(char byte, CallSink& sink) {
    const JsonScanner::Step step = arguments_.push(byte, sink);
    if (step == JsonScanner::Step::wrong) return Step::stop;
    if (step == JsonScanner::Step::done) state_ = State::after;
    return Step::more;
  }

  std::unique_ptr<CallReader> json_;
  MarkerFinder separators_;
  State state_ = State::start;
  std::string name_;
  std::string id_;
  JsonArguments arguments_;
};

}  // namespace

std::unique_ptr<CallReader> make_named_calls(const CallContext& context) {
  return std::make_unique<NamedCalls>(context);
}

}  // namespace outrider
