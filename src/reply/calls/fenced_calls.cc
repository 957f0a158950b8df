// SPDX-License-Identifier: Apache-2.0
// DeepSeek's calls: KIND<sep>N and a fenced block of JSON (V3, R1), or N<sep>{..} (V3.1). Each is
// between markers of its own, within markers around all calls. Kimi's calls have the same form with
// functions.N:NUMBER instead of N, which is also the call's identifier.
#include <utility>

#include "reply/calls/call_reader.h"
#include "reply/calls/json_arguments.h"
#include "reply/json_scanner.h"
#include "reply/json_words.h"

namespace outrider {
namespace {

class FencedCalls final : public CallReader {
 public:
  explicit FencedCalls(const CallContext& context)
      : between_({context.format->call_begin, context.format->end}),
        separator_({context.format->separator}),
        fence_({"```json"}),
        closing_({context.format->call_end, "```"}),
        name_prefix_(context.format->name_prefix) {
    const bool in_call = context.format->begins[context.begin] == context.format->call_begin;
    state_ = in_call ? State::word : State::between;
  }

  Step push(char byte, CallSink& sink) override {
    std::optional<std::size_t> found;
    switch (state_) {
      case State::between:
        if (is_blank(byte) && between_.held().empty()) return Step::more;
        if (!match(between_, byte, found)) return Step::stop;
        if (!found) return Step::more;
        if (*found == 1) return Step::done;
        name_.clear();
        arguments_ = {};
        return go(State::word);
      case State::word:  // the call's kind, or its name
        found = separator_.push(byte, name_);
        if (name_.size() > kLongestName_bytes) return Step::stop;
        return found ? go(State::behind_separator) : Step::more;
      case State::behind_separator:
        if (is_blank(byte)) return Step::more;
        if (byte == '{') return begin_arguments(byte, sink);
        name_.assign(1, byte);
        return go(State::name);
      case State::name:
        if (byte == '\n') return go(State::before_fence);
        if (byte == '{') return begin_arguments(byte, sink);
        name_ += byte;
        return name_.size() > kLongestName_bytes ? Step::stop : Step::more;
      case State::before_fence:
        if (fence_.held().empty() && is_blank(byte)) return Step::more;
        if (fence_.held().empty() && byte == '{') return begin_arguments(byte, sink);
        if (!match(fence_, byte, found)) return Step::stop;
        return found ? go(State::in_fence) : Step::more;
      case State::in_fence:
        if (is_blank(byte)) return Step::more;
        return byte == '{' ? begin_arguments(byte, sink) : Step::stop;
      case State::arguments:
        return argument_byte(byte, sink);
      default:  // closing
        if (is_blank(byte) && closing_.held().empty()) return Step::more;
        if (!match(closing_, byte, found)) return Step::stop;
        if (!found) return Step::more;
        if (*found == 0) state_ = State::between;
        return Step::whole;
    }
  }

 private:
  enum class State {
    between,
    word,
    behind_separator,
    name,
    before_fence,
    in_fence,
    arguments,
    closing,
  };

  Step go(State next) {
    state_ = next;
    return Step::more;
  }

  Step begin_arguments(char byte, CallSink& sink) {
    std::string_view name = without_blanks(name_);
    std::string_view id;
    if (!name_prefix_.empty()) {
      id = name;
      if (name.starts_with(name_prefix_)) name.remove_prefix(name_prefix_.size());
      const std::size_t colon = name.rfind(':');
      const bool is_numbered =
          colon != std::string_view::npos &&
          name.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
      if (is_numbered) name = name.substr(0, colon);
    }
    if (!is_call_name(name)) return Step::stop;
    sink.begin_call(name, id);
    state_ = State::arguments;
    return argument_byte(byte, sink);
  }

  Step argument_byte(char byte, CallSink& sink) {
    const JsonScanner::Step step = arguments_.push(byte, sink);
    if (step == JsonScanner::Step::wrong) return Step::stop;
    return step == JsonScanner::Step::done ? go(State::closing) : Step::more;
  }

  MarkerFinder between_;
  MarkerFinder separator_;
  MarkerFinder fence_;
  MarkerFinder closing_;
  std::string_view name_prefix_;  // the format must outlive the reader
  State state_;
  std::string name_;
  JsonArguments arguments_;
};

}  // namespace

std::unique_ptr<CallReader> make_fenced_calls(const CallContext& context) {
  return std::make_unique<FencedCalls>(context);
}

}  // namespace outrider
