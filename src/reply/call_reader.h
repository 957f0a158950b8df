// Reads the calls that stand behind an opening marker, byte by byte: the seam between ReplyParser
// and the forms of calls.
#ifndef OUTRIDER_REPLY_CALL_READER_H_
#define OUTRIDER_REPLY_CALL_READER_H_

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

// Names and identifiers are shorter: what is longer is no call.
inline constexpr std::size_t kLongestName_bytes = 256;

// Takes calls one after the other: begin, arguments in pieces, end.
class CallSink {
 public:
  virtual ~CallSink() = default;
  virtual void begin_call(std::string_view name, std::string_view id) = 0;
  virtual void add_arguments(std::string_view json) = 0;
  virtual void end_call(std::string_view id) = 0;  // an id that the text gave behind the beginning
};

// Not thread-safe. One reader reads what is behind one marker.
class CallReader {
 public:
  enum class Step {
    more,
    whole,  // as more, and what was read up to here is whole: closed lists, fences and the like
    done,   // the byte was the last of the closing marker
    stop,   // the byte is part of no call here; it was not taken
  };
  virtual ~CallReader() = default;
  // The byte that ends a call gives `more`, so that what is behind it is read as that.
  virtual Step push(char byte, CallSink& sink) = 0;

 protected:
  // A byte at a place where one of the finder's markers must stand. True: `found` has the marker
  // once it is whole. False: none can stand here.
  static bool match(MarkerFinder& finder, char byte, std::optional<std::size_t>& found);
};

struct CallContext {
  const CallFormat* format = nullptr;  // outlives the reader
  const ToolSet* tools = nullptr;      // so does this
  std::size_t begin = 0;               // which of the format's markers was found
  bool is_bare = false;                // none was: the text itself begins with a call
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
// By the format's syntax, which is neither `none` nor `channels`.
std::unique_ptr<CallReader> make_call_reader(const CallContext& context);

// Whether a function may be called that: not empty, not too long, neither blanks nor controls in
// it.
bool is_call_name(std::string_view text);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_CALL_READER_H_
