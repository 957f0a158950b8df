// Texts as OpenAI's chat completions and completions: whole, or as a stream of chunks.
#ifndef OUTRIDER_SERVER_ENDPOINTS_OPENAI_SINK_H_
#define OUTRIDER_SERVER_ENDPOINTS_OPENAI_SINK_H_

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "server/answer_json.h"
#include "server/texts.h"

namespace outrider::server {

struct OpenAiStyle {
  bool chat = true;
  bool streams = false;
  bool include_usage = false;  // stream_options.include_usage
  int log_probs = -1;          // GenerateOptions::log_probs
  std::string echo = {};       // of completions: what stands before each text
};

class OpenAiSink final : public TextSink {
 public:
  OpenAiSink(std::shared_ptr<const ServedModel> model, std::shared_ptr<HttpReply> reply,
             OpenAiStyle style, std::int64_t prompt_tokens, int n_choices);

  void token(int choice, const TokenEvent& event) override;
  void end(int choice, GenerateResult result) override;
  void all_ended() override;
  void failed(const ApiError& error) override;

 private:
  struct Choice {
    std::string text;
    Json log_probs = Json::array();  // entries that have not been sent
    std::size_t n_offset = 0;        // of completions' text_offset: bytes of the text so far
    std::size_t n_streamed = 0;      // bytes of the text
    FinishReason reason = FinishReason::length;
  };
  Json head(bool chunk) const;
  Json log_probs_json(Choice& choice) const;
  void send_chunk(int index, std::string_view text, const char* finish_reason);
  void begin_stream();

  std::shared_ptr<const ServedModel> model_;
  std::shared_ptr<HttpReply> reply_;
  OpenAiStyle style_;
  std::string id_;
  std::time_t created_;
  Usage usage_;
  std::vector<Choice> choices_;
  bool begun_ = false;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ENDPOINTS_OPENAI_SINK_H_
