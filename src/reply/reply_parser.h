// SPDX-License-Identifier: Apache-2.0
// Parses a reply while it is generated: content, reasoning, and tool calls with their arguments.
// ReplyReader (outrider/reply_reader.h) is its public face, which has the events, too.
//
// Invariants:
// - Events depend on the text alone, not on how it is cut into pushes: consecutive pieces of the
//   same kind concatenate to the same text for every cut.
// - The arguments of a complete call are the text of a JSON object.
// - Nothing is lost except the markers of calls, reasoning and answers, headers of messages, and
//   white space next to them. Text that looks like a call and is none is content, with its marker,
//   as soon as that is certain, at the latest at the end. If the call had begun by then (its
//   arguments are passed on as they come), it ends with `complete` false, and its text from the
//   marker on follows as content with of_broken_call.
// - If every push has whole characters, so has every event.
// - The time is linear in the text.
#ifndef OUTRIDER_REPLY_REPLY_PARSER_H_
#define OUTRIDER_REPLY_REPLY_PARSER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "outrider/reply_reader.h"
#include "reply/calls/call_reader.h"
#include "reply/marker_finder.h"
#include "reply/reply_format.h"
#include "reply/tool_set.h"

namespace outrider {

struct ReplyParserOptions {
  // Needed for types of arguments that the text does not show, for arguments without names, and to
  // distinguish an answer in JSON from a call without markers. Null: no tools are known, and such
  // calls may have any name.
  std::shared_ptr<const ToolSet> tools = {};
  bool calls = true;          // false: calls are content
  bool reasoning = true;      // false: reasoning is content
  bool in_reasoning = false;  // the prompt has begun the reasoning (opens_reasoning)
};

// Not thread-safe; one parser reads one reply. Unusable after an exception from the callback.
class ReplyParser : private CallSink {
 public:
  // Limit of a call's text; longer text is not a call.
  static constexpr std::size_t kLongestCall_bytes = std::size_t{1} << 20;
  // Limit of a header: a name twice, and some words and markers.
  static constexpr std::size_t kLongestHeader_bytes = 3 * kLongestName_bytes;

  using Callback = std::function<void(const ReplyEvent&)>;
  ReplyParser(ReplyFormat format, ReplyParserOptions options, Callback on_event);

  // Readers refer to the format by its address.
  ReplyParser(const ReplyParser&) = delete;
  ReplyParser& operator=(const ReplyParser&) = delete;

  void push(std::string_view text);
  void finish();  // do not push after it

  int n_calls() const { return n_calls_; }  // begun so far

 private:
  enum class Mode { header, content, reasoning, calls };
  enum class Marker { calls, reasoning, answer_begin, answer_end, message_end, header };

  void begin_call(std::string_view name, std::string_view id) override;
  void add_arguments(std::string_view json) override;
  void end_call(std::string_view id) override;

  bool take(char byte);
  bool take_in_header(char byte);
  bool take_in_content(char byte);
  void take_in_reasoning(char byte);
  bool take_in_calls(char byte);
  void found(std::size_t marker);
  void begin_section(std::size_t begin, bool is_bare);
  void break_section();
  void begin_header(std::string_view marker);
  bool may_be_header() const;
  void read_header();
  void break_header();
  void stand_behind_section();
  void add_text(ReplyEvent::Kind kind, std::string_view text, bool of_broken_call = false);
  void emit(ReplyEvent::Kind kind, std::string_view text, bool of_broken_call);
  void flush();

  ReplyFormat format_;
  ReplyParserOptions options_;
  Callback on_event_;
  MarkerFinder markers_;            // in content
  std::vector<Marker> kinds_;       // of each of them
  MarkerFinder reasoning_markers_;  // the end, the beginning
  char bare_begin_ = '\0';          // the first byte of a call without a marker
  bool calls_may_follow_ = false;   // or another marker, within content

  Mode mode_ = Mode::content;  // with messages: what follows the last header
  bool finished_ = false;
  // Only white space since the reply began, or since calls or reasoning ended: only here may
  // reasoning or a call without a marker begin.
  bool at_boundary_ = true;
  bool drops_blanks_ = false;  // the next blanks, which belong to the marker before
  bool in_answer_ = false;
  std::string blanks_;  // held back until the next text is known

  // Calls between an opening and a closing marker.
  std::unique_ptr<CallReader> reader_;
  std::string raw_;  // their text since the end of the last complete call; or a header's
  int n_calls_ = 0;
  int n_ended_in_section_ = 0;
  bool call_is_open_ = false;
  // Each further message of one kind begins after an empty line.
  bool has_content_ = false;
  bool has_reasoning_ = false;

  // The event under construction: it is delivered with the push.
  ReplyEvent::Kind pending_kind_ = ReplyEvent::Kind::content;
  bool pending_of_broken_call_ = false;
  std::string pending_;
  std::string freed_;
};

}  // namespace outrider

#endif  // OUTRIDER_REPLY_REPLY_PARSER_H_
