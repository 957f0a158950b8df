// SPDX-License-Identifier: Apache-2.0
// Replies as OpenAI's chat completions: whole, or as a stream of chunks.
#ifndef OUTRIDER_SERVER_ENDPOINTS_CHAT_SINK_H_
#define OUTRIDER_SERVER_ENDPOINTS_CHAT_SINK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/answers/replies.h"
#include "server/endpoints/openai_style.h"

namespace outrider::server {

class ChatSink final : public ReplySink {
 public:
  ChatSink(std::shared_ptr<const ServedModel> model, std::shared_ptr<HttpReply> reply,
           const OpenAiStyle& style, std::int64_t prompt_tokens, int n_choices);

  void token(int choice, const TokenEvent& event) override;
  void event(int choice, const ReplyEvent& event) override;
  void end(int choice, const GenerateResult& result, int n_calls) override;
  void all_ended() override;
  void failed(const ApiError& error) override;

 private:
  struct ToolCall {
    std::string id;
    std::string name;
    std::string arguments;
  };
  struct Choice {
    std::string content;
    std::string reasoning;
    std::vector<ToolCall> calls;
    Json log_probs = Json::array();  // entries not sent yet
    const char* reason = nullptr;
    bool has_role = false;  // the stream's first chunk has been sent
  };
  Choice& of(int index) { return choices_[static_cast<std::size_t>(index)]; }
  void keep(Choice& choice, const ReplyEvent& event);
  void send_delta(int index, Json delta, const char* finish_reason);
  Json log_probs_json(Choice& choice) const;

  std::shared_ptr<const ServedModel> model_;
  OpenAiStyle style_;
  OpenAiWriter writer_;
  Usage usage_;
  std::vector<Choice> choices_;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ENDPOINTS_CHAT_SINK_H_
