// Texts of one request as replies of an assistant: what is content, reasoning and calls of tools,
// while they are written.
#ifndef OUTRIDER_SERVER_REPLIES_H_
#define OUTRIDER_SERVER_REPLIES_H_

#include <memory>

#include "reply/reply_parser.h"
#include "server/texts.h"

namespace outrider::server {

// What an endpoint makes of replies. Called one at a time. Throws as TextSink.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  // A token of the text: what it adds comes as events, now or later. The one that ends the text is
  // not among them.
  virtual void token(int choice, const TokenEvent& event) = 0;
  virtual void event(int choice, const ReplyEvent& event) = 0;
  // All events of the choice have come. n_calls: of tools, that are complete.
  virtual void end(int choice, const GenerateResult& result, int n_calls) = 0;
  // TextSink's.
  virtual void all_ended() = 0;
  virtual void failed(const ApiError& error) = 0;
};

// Reads each of n_choices texts and passes on what they say.
std::shared_ptr<TextSink> reply_reader(const ReplyFormat& format, const ReplyParserOptions& options,
                                       int n_choices, std::shared_ptr<ReplySink> sink);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_REPLIES_H_
