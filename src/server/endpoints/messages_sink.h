// SPDX-License-Identifier: Apache-2.0
// Replies as Anthropic's messages: whole, or as a stream of events.
#ifndef OUTRIDER_SERVER_ENDPOINTS_MESSAGES_SINK_H_
#define OUTRIDER_SERVER_ENDPOINTS_MESSAGES_SINK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/answers/answer_json.h"
#include "server/answers/replies.h"

namespace outrider::server {

class MessagesSink final : public ReplySink {
 public:
  // stop_sequences: those of the request. A reply has one choice.
  MessagesSink(std::shared_ptr<const ServedModel> model, std::shared_ptr<HttpReply> reply,
               bool streams, std::int64_t prompt_tokens, std::vector<std::string> stop_sequences);

  void token(int choice, const TokenEvent& event) override;
  void event(int choice, const ReplyEvent& event) override;
  void end(int choice, const GenerateResult& result, int n_calls) override;
  void all_ended() override;
  void failed(const ApiError& error) override;

 private:
  // Content consists of blocks, one after the other.
  enum class Block { none, text, thinking, tool_use };
  void open(Block kind, Json head);
  void close();
  void add(const char* delta_type, const char* field, std::string_view text);
  void write(const char* type, Json event);
  void begin_stream();
  Json head() const;
  Json usage() const;

  std::shared_ptr<const ServedModel> model_;
  std::shared_ptr<HttpReply> reply_;
  bool streams_;
  std::vector<std::string> stop_sequences_;
  std::string id_;
  Usage usage_;
  Block block_ = Block::none;
  int n_blocks_ = 0;  // of a stream, begun so far
  Json content_ = Json::array();
  std::string input_;  // of the current call
  const char* stop_reason_ = nullptr;
  Json stop_sequence_;
  bool begun_ = false;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ENDPOINTS_MESSAGES_SINK_H_
