// SPDX-License-Identifier: Apache-2.0
// Replies as OpenAI's responses: whole, or as a stream of events.
#ifndef OUTRIDER_SERVER_ENDPOINTS_RESPONSES_SINK_H_
#define OUTRIDER_SERVER_ENDPOINTS_RESPONSES_SINK_H_

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>

#include "server/answers/answer_json.h"
#include "server/answers/replies.h"

namespace outrider::server {

class ResponsesSink final : public ReplySink {
 public:
  // echo: fields of the request that the response repeats. A reply has one choice.
  ResponsesSink(std::shared_ptr<const ServedModel> model, std::shared_ptr<HttpReply> reply,
                bool streams, std::int64_t prompt_tokens, Json echo);

  void token(int choice, const TokenEvent& event) override;
  void event(int choice, const ReplyEvent& event) override;
  void end(int choice, const GenerateResult& result, int n_calls) override;
  void all_ended() override;
  void failed(const ApiError& error) override;

 private:
  // The output consists of items, one after the other.
  enum class Item { none, message, reasoning, call };
  void open(Item kind);
  void open_call(const ReplyEvent& event);
  void close(bool complete);
  void add(const char* type, std::string_view text);
  void write(const char* type, Json event);
  Json at_item() const;  // the place of the current item, for events
  void begin_stream();
  Json response(const char* status) const;

  std::shared_ptr<const ServedModel> model_;
  std::shared_ptr<HttpReply> reply_;
  bool streams_;
  Json echo_;
  std::string id_;
  std::time_t created_;
  Usage usage_;
  Item kind_ = Item::none;
  Json item_;         // the current one, without its text
  std::string text_;  // of the item
  Json output_ = Json::array();
  int n_items_ = 0;  // begun so far: more than the output has if a call was incomplete
  const char* status_ = "completed";
  std::int64_t n_events_ = 0;
  std::int64_t n_untold_ = 0;     // tokens since the last event
  std::int64_t n_reasoning_ = 0;  // tokens of reasoning, including its opening marker
  bool begun_ = false;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ENDPOINTS_RESPONSES_SINK_H_
