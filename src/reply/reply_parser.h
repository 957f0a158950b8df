// Takes a reply apart while it is being written: what is content, what is reasoning, which tools it
// calls with which arguments.
//
// Invariants:
// - Events depend on the text alone, not on how it is cut into pushes: pieces of the same kind that
//   follow each other say together the same for every cut.
// - Arguments of a call that ended whole are a JSON object's text.
// - Nothing is lost but the markers of calls, reasoning and answers, headers of messages, and white
//   space next to them.
//   What looks like a call and turns
//   out to be none is content, with its marker, as soon as that is certain, at the latest at the
//   end. If the call had begun by then (its arguments are passed on as they come), it ends with
//   `complete` false, and its text from the marker on follows as content that says so.
// - Whole characters in each push: whole characters in each event.
// - The time is linear in the text, whatever it holds.
#ifndef OUTRIDER_REPLY_REPLY_PARSER_H_
#define OUTRIDER_REPLY_REPLY_PARSER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "reply/call_reader.h"
#include "reply/marker_finder.h"
#include "reply/reply_format.h"
#include "reply/tool_set.h"

namespace outrider {

// Views are valid during the call only.
struct ReplyEvent {
  enum class Kind { content, reasoning, call_begin, call_arguments, call_end };
  Kind kind = Kind::content;
  std::string_view text = {};  // content, reasoning, JSON of arguments: what comes next of it
  int call = -1;               // which call of the reply, from 0
  std::string_view name = {};  // of call_begin
  // Of call_begin, or of call_end where the text names it behind the arguments only. Few forms have
  // one.
  std::string_view id = {};
  bool complete = true;         // of call_end: false where the text broke off or went wrong
  bool of_broken_call = false;  // content that was passed on as a call before
};

struct ReplyParserOptions {
  // For types of arguments that the text does not tell apart, for arguments without names, and to
  // tell an answer in JSON from a call where calls have no markers. Null: no tools are known, and
  // such calls may have any name.
  std::shared_ptr<const ToolSet> tools = {};
  bool calls = true;          // false: calls are content like any other text
  bool reasoning = true;      // false: so is reasoning
  bool in_reasoning = false;  // the prompt has begun the reasoning (opens_reasoning)
};

// Not thread-safe; one parser reads one reply. After an exception of the callback's it is of no
// more use.
class ReplyParser : private CallSink {
 public:
  // A call whose text is longer is none.
  static constexpr std::size_t kLongestCall_bytes = std::size_t{1} << 20;
  // Nor is what is longer than this a header: a name twice, and some words and markers.
  static constexpr std::size_t kLongestHeader_bytes = 3 * kLongestName_bytes;

  using Callback = std::function<void(const ReplyEvent&)>;
  ReplyParser(ReplyFormat format, ReplyParserOptions options, Callback on_event);

  // Readers know the format by its address.
  ReplyParser(const ReplyParser&) = delete;
  ReplyParser& operator=(const ReplyParser&) = delete;

  void push(std::string_view text);
  void finish();  // nothing may be pushed after it

  int n_calls() const { return n_calls_; }  // that have begun

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
  char bare_begin_ = '\0';          // what a call without a marker begins with
  bool calls_may_follow_ = false;   // or another marker, in the middle of content

  Mode mode_ = Mode::content;  // where replies are messages: what is behind the last header
  bool finished_ = false;
  // Nothing but white space since the reply began, or since calls or reasoning ended: only here may
  // reasoning or a call without a marker begin.
  bool at_boundary_ = true;
  bool drops_blanks_ = false;  // that come next: they belong to the marker before
  bool in_answer_ = false;
  std::string blanks_;  // held back until it is known what comes behind them

  // Calls between an opening and a closing marker.
  std::unique_ptr<CallReader> reader_;
  std::string raw_;  // their text, from the end of the last whole call on; or a header's
  int n_calls_ = 0;
  int n_ended_in_section_ = 0;
  bool call_is_open_ = false;
  // Of several messages of one kind each begins behind an empty line.
  bool has_content_ = false;
  bool has_reasoning_ = false;

  // The event under way: what is added to it goes out with the push.
  ReplyEvent::Kind pending_kind_ = ReplyEvent::Kind::content;
  bool pending_of_broken_call_ = false;
  std::string pending_;
  std::string freed_;
};

}  // namespace outrider

#endif  // OUTRIDER_REPLY_REPLY_PARSER_H_
