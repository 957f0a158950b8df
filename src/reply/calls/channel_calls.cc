// SPDX-License-Identifier: Apache-2.0
// A message whose header names a function; its text is the arguments.
#include <utility>

#include "reply/calls/call_reader.h"
#include "reply/calls/json_arguments.h"
#include "reply/json_scanner.h"
#include "reply/json_words.h"

namespace outrider {
namespace {

class ChannelCall final : public CallReader {
 public:
  ChannelCall(std::string name, std::vector<std::string> ends)
      : name_(std::move(name)), ends_(std::move(ends)) {}

  Step push(char byte, CallSink& sink) override {
    switch (state_) {
      case State::before:
        if (is_blank(byte)) return Step::more;
        if (byte != '{') return Step::stop;
        sink.begin_call(name_, {});
        state_ = State::arguments;
        [[fallthrough]];
      case State::arguments:
        return argument_byte(byte, sink);
      default: {
        if (is_blank(byte) && ends_.held().empty()) return Step::more;
        std::optional<std::size_t> found;
        if (!match(ends_, byte, found)) return Step::stop;
        return found ? Step::done : Step::more;
      }
    }
  }

 private:
  enum class State { before, arguments, after };

  Step argument_byte(char byte, CallSink& sink) {
    const JsonScanner::Step step = arguments_.push(byte, sink);
    if (step == JsonScanner::Step::wrong) return Step::stop;
    if (step == JsonScanner::Step::done) state_ = State::after;
    return Step::more;
  }

  std::string name_;
  MarkerFinder ends_;
  State state_ = State::before;
  JsonArguments arguments_;
};

}  // namespace

std::unique_ptr<CallReader> make_channel_call(std::string name, std::vector<std::string> ends) {
  return std::make_unique<ChannelCall>(std::move(name), std::move(ends));
}

}  // namespace outrider
