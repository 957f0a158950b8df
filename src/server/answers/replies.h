// SPDX-License-Identifier: Apache-2.0
// Parses the texts of one request as an assistant's replies while they are generated: content,
// reasoning and tool calls.
#ifndef OUTRIDER_SERVER_ANSWERS_REPLIES_H_
#define OUTRIDER_SERVER_ANSWERS_REPLIES_H_

#include <memory>

#include "reply/reply_parser.h"
#include "server/texts.h"

namespace outrider::server {

// An endpoint's receiver of replies. Calls come one at a time. Exceptions as in TextSink.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  // A token of the text; what it adds comes as events, now or later. Not called for the token that
  // ends the text.
  virtual void token(int choice, const TokenEvent& event) = 0;
  virtual void event(int choice, const ReplyEvent& event) = 0;
  // All events of the choice have come. n_calls: the number of complete tool calls.
  virtual void end(int choice, const GenerateResult& result, int n_calls) = 0;
  // As in TextSink.
  virtual void all_ended() = 0;
  virtual void failed(const ApiError& error) = 0;
};

// Parses each of n_choices texts and passes on the events.
std::shared_ptr<TextSink> reply_reader(const ReplyFormat& format, const ReplyParserOptions& options,
                                       int n_choices, std::shared_ptr<ReplySink> sink);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ANSWERS_REPLIES_H_
