// SPDX-License-Identifier: Apache-2.0
// For tests and fuzzing: a parser's events combined, independent of the cut into pushes.
#ifndef OUTRIDER_REPLY_REPLY_TRACE_H_
#define OUTRIDER_REPLY_REPLY_TRACE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reply/reply_parser.h"

namespace outrider {

struct TracedCall {
  std::string name = {};
  std::string id = {};
  std::string arguments = {};
  bool ended = false;
  bool complete = false;
};

struct ReplyTrace {
  std::string content = {};
  std::string reasoning = {};
  std::vector<TracedCall> calls = {};
  std::string broken = {};  // the part of content that was passed on as calls before
  // All events in order, a line for each run of one kind.
  std::string lines = {};
  bool in_order = true;  // calls do not overlap
};

// `cuts`: the ends of pushes, ascending, within the text.
inline ReplyTrace trace_reply(const ReplyFormat& format, const ReplyParserOptions& options,
                              std::string_view text, const std::vector<std::size_t>& cuts = {}) {
  using Kind = ReplyEvent::Kind;
  ReplyTrace trace;
  std::string last;
  const auto line = [&](std::string_view label, std::string_view words) {
    if (last != label) trace.lines.append(trace.lines.empty() ? "" : "\n").append(label);
    trace.lines += words;
    last = label;
  };
  bool open = false;
  ReplyParser parser(format, options, [&](const ReplyEvent& event) {
    switch (event.kind) {
      case Kind::content:
        line(event.of_broken_call ? "broken: " : "content: ", event.text);
        trace.content += event.text;
        if (event.of_broken_call) trace.broken += event.text;
        break;
      case Kind::reasoning:
        line("reasoning: ", event.text);
        trace.reasoning += event.text;
        break;
      case Kind::call_begin:
        trace.in_order = trace.in_order && !std::exchange(open, true) &&
                         event.call == static_cast<int>(trace.calls.size());
        trace.calls.push_back({.name = std::string(event.name), .id = std::string(event.id)});
        line("call: ", std::string(event.name) + " ");
        break;
      case Kind::call_arguments:
        trace.in_order = trace.in_order && open;
        trace.calls.back().arguments += event.text;
        trace.lines += event.text;
        break;
      case Kind::call_end:
        trace.in_order = trace.in_order && std::exchange(open, false);
        trace.calls.back().ended = true;
        trace.calls.back().complete = event.complete;
        if (!event.id.empty()) trace.calls.back().id = event.id;
        if (!trace.calls.back().id.empty()) trace.lines += " #" + trace.calls.back().id;
        if (!event.complete) trace.lines += " (broken off)";
        last.clear();
        break;
    }
  });
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    parser.push(text.substr(begin, cut - begin));
    begin = cut;
  }
  parser.push(text.substr(begin));
  parser.finish();
  trace.in_order = trace.in_order && !open;
  return trace;
}

}  // namespace outrider

#endif  // OUTRIDER_REPLY_REPLY_TRACE_H_
