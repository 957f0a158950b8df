// SPDX-License-Identifier: Apache-2.0
#include "outrider/reply_reader.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "outrider/error.h"
#include "reply/reply_parser.h"

namespace outrider {

struct ReplyReader::State {
  State(const ReplyFormat& format, const ReplyParserOptions& options, Callback to)
      : on_event(std::move(to)), parser(format, options, [this](const ReplyEvent& event) {
          if (event.kind == ReplyEvent::Kind::call_end && event.complete) ++n_calls;
          on_event(event);
        }) {}

  Callback on_event;
  int n_calls = 0;
  std::size_t n_pushed_bytes = 0;
  bool finished = false;
  ReplyParser parser;
};

ReplyReader::ReplyReader(const ReplyFormat& format, const ReplyParserOptions& options,
                         Callback on_event)
    : state_(std::make_unique<State>(format, options, std::move(on_event))) {}
ReplyReader::~ReplyReader() = default;
ReplyReader::ReplyReader(ReplyReader&&) noexcept = default;
ReplyReader& ReplyReader::operator=(ReplyReader&&) noexcept = default;

void ReplyReader::push(std::string_view text) {
  if (state_->finished) throw UsageError("read reply", "text", "none behind its end", "more");
  state_->n_pushed_bytes += text.size();
  state_->parser.push(text);
}

void ReplyReader::finish(std::string_view whole) {
  if (state_->finished) return;
  push(whole.substr(std::min(state_->n_pushed_bytes, whole.size())));
  state_->finished = true;
  state_->parser.finish();
}

int ReplyReader::n_calls() const { return state_->n_calls; }

}  // namespace outrider
