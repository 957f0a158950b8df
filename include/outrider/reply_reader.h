// SPDX-License-Identifier: Apache-2.0
// Reads an assistant's reply while it is generated: content, reasoning and tool calls, each piece
// as soon as it is certain. ChatTurn::reader() makes a reader for a turn.
//
//   const outrider::ChatTurn turn(tokenizer, options);
//   outrider::ReplyReader reader = turn.reader([](const outrider::ReplyEvent& event) {
//     if (event.kind == outrider::ReplyEvent::Kind::content) std::cout << event.text;
//   });
//   outrider::GenerateRequest request = turn.request({});
//   request.options.on_token = [&](const outrider::TokenEvent& token) { reader.push(token.text); };
//   reader.finish(generator.generate({&request, 1}).front().text);
#ifndef OUTRIDER_REPLY_READER_H_
#define OUTRIDER_REPLY_READER_H_

#include <functional>
#include <memory>
#include <string_view>

namespace outrider {

struct ReplyFormat;
struct ReplyParserOptions;

// A piece of a reply. Views are valid during the call only.
//
// A call is a call_begin, call_arguments, and a call_end; calls do not overlap, and content and
// reasoning come between them. A call that breaks off ends with `complete` false. Its text then
// follows as content, with `of_broken_call`. All pieces of content together are the content of
// ChatTurn::read().
struct ReplyEvent {
  enum class Kind { content, reasoning, call_begin, call_arguments, call_end };
  Kind kind = Kind::content;
  // The next piece of content, of reasoning, or of a call's arguments (the text of a JSON object).
  std::string_view text = {};
  int call = -1;               // index of the call in the reply, from 0; broken ones are counted
  std::string_view name = {};  // for call_begin
  // For call_begin, or for call_end if the text gives it only after the arguments. Few forms have
  // one.
  std::string_view id = {};
  bool complete = true;         // for call_end: false if the text ended early or was invalid
  bool of_broken_call = false;  // content that was passed on as a call before
};

// Events depend only on the text, not on how it is cut into pushes: consecutive pieces of one kind
// concatenate to the same text for every cut. If every push has whole characters (UTF-8), so has
// every event. The time is linear in the text.
//
// Not thread-safe: a reader reads one reply, and calls back from within push() and finish(). It
// keeps the parts of its ChatTurn that it needs. Unusable after an exception from the callback.
class ReplyReader {
 public:
  using Callback = std::function<void(const ReplyEvent&)>;

  // For internal use (ReplyParserOptions are options of reply/reply_parser.h).
  ReplyReader(const ReplyFormat& format, const ReplyParserOptions& options, Callback on_event);
  ~ReplyReader();
  ReplyReader(ReplyReader&&) noexcept;
  ReplyReader& operator=(ReplyReader&&) noexcept;

  // Adds the next bytes of the text, as in TokenEvent::text. Throws UsageError after finish().
  void push(std::string_view text);
  // Called at the end of the text: reports the pieces that were held back. `whole` is the text from
  // its beginning, as in GenerateResult::text; the part that was not pushed is read first. Empty:
  // all was pushed. A second call does nothing.
  void finish(std::string_view whole = {});

  int n_calls() const;  // complete ones so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider

#endif  // OUTRIDER_REPLY_READER_H_
