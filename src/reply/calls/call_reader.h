// SPDX-License-Identifier: Apache-2.0
// Reads the calls after an opening marker, byte by byte: the interface between ReplyParser and the
// forms of calls.
#ifndef OUTRIDER_REPLY_CALLS_CALL_READER_H_
#define OUTRIDER_REPLY_CALLS_CALL_READER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reply/marker_finder.h"
#include "reply/reply_format.h"
#include "reply/tool_set.h"

namespace outrider {

// Limit for names and identifiers: anything longer is not a call.
inline constexpr std::size_t kLongestName_bytes = 256;

// Receives calls one after the other: begin, arguments in pieces, end.
class CallSink {
 public:
  virtual ~CallSink() = default;
  virtual void begin_call(std::string_view name, std::string_view id) = 0;
  virtual void add_arguments(std::string_view json) = 0;
  virtual void end_call(std::string_view id) = 0;  // an id that the text gave after the beginning
};

// Not thread-safe. A reader reads the text after one marker.
class CallReader {
 public:
  enum class Step {
    more,
    whole,  // as more, and the text so far is complete: closed lists, fences and the like
    done,   // the byte was the last of the closing marker
    stop,   // the byte is not part of a call; it was not taken
  };
  virtual ~CallReader() = default;
  // The byte that ends a call returns `more`, so that the text after it is read as a further call.
  virtual Step push(char byte, CallSink& sink) = 0;

 protected:
  // A byte at a place where one of the finder's markers must be. True: `found` is set once the
  // marker is complete. False: no marker is possible here.
  static bool match(MarkerFinder& finder, char byte, std::optional<std::size_t>& found);
};

struct CallContext {
  const CallFormat* format = nullptr;  // must outlive the reader
  const ToolSet* tools = nullptr;      // must outlive the reader
  std::size_t begin = 0;               // index of the marker that was found
  bool is_bare = false;                // there was none: the text begins with a call
};

std::unique_ptr<CallReader> make_json_calls(const CallContext& context);
std::unique_ptr<CallReader> make_named_calls(const CallContext& context);
std::unique_ptr<CallReader> make_fenced_calls(const CallContext& context);
std::unique_ptr<CallReader> make_tagged_calls(const CallContext& context);
std::unique_ptr<CallReader> make_paired_calls(const CallContext& context);
std::unique_ptr<CallReader> make_python_calls(const CallContext& context);
std::unique_ptr<CallReader> make_bareword_calls(const CallContext& context);
// The text of a message to that function, up to any of these markers.
std::unique_ptr<CallReader> make_channel_call(std::string name, std::vector<std::string> ends);
// By the format's syntax, which must not be `none` or `channels`.
std::unique_ptr<CallReader> make_call_reader(const CallContext& context);

// Whether the text can be a function's name: not empty, not too long, without blanks and control
// characters.
bool is_call_name(std::string_view text);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_CALLS_CALL_READER_H_
