// SPDX-License-Identifier: Apache-2.0
// Texts as OpenAI's completions: whole, or as a stream of chunks.
#ifndef OUTRIDER_SERVER_ENDPOINTS_COMPLETION_SINK_H_
#define OUTRIDER_SERVER_ENDPOINTS_COMPLETION_SINK_H_

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "server/answers/answer_json.h"
#include "server/endpoints/openai_style.h"
#include "server/texts.h"

namespace outrider::server {

class CompletionSink final : public TextSink {
 public:
  // echo: text before each text.
  CompletionSink(std::shared_ptr<const ServedModel> model, std::shared_ptr<HttpReply> reply,
                 const OpenAiStyle& style, std::int64_t prompt_tokens, int n_choices,
                 std::string echo);

  void token(int choice, const TokenEvent& event) override;
  void end(int choice, GenerateResult result) override;
  void all_ended() override;
  void failed(const ApiError& error) override;

 private:
  struct Choice {
    std::string text;
    Json log_probs = Json::array();  // entries not sent yet
    std::size_t n_offset = 0;        // of text_offset: bytes of the text so far
    std::size_t n_streamed = 0;      // bytes of the text
    FinishReason reason = FinishReason::length;
  };
  Json log_probs_json(Choice& choice) const;
  void send_chunk(int index, std::string_view text, const char* finish_reason);

  std::shared_ptr<const ServedModel> model_;
  OpenAiStyle style_;
  OpenAiWriter writer_;
  Usage usage_;
  std::vector<Choice> choices_;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ENDPOINTS_COMPLETION_SINK_H_
