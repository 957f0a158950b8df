// SPDX-License-Identifier: Apache-2.0
// A model as the endpoints see it: its name, its loop, and the defaults of requests.
#ifndef OUTRIDER_SERVER_SERVED_MODEL_H_
#define OUTRIDER_SERVER_SERVED_MODEL_H_

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outrider/chat.h"
#include "outrider/chat_template.h"
#include "outrider/generate.h"
#include "reply/reply_format.h"
#include "server/engine_loop.h"
#include "server/metrics.h"
#include "server/requests/history_form.h"
#include "server/slots.h"

namespace outrider::server {

struct ServedOptions {
  std::string name;                     // the name for clients
  std::string chat_template = {};       // instead of the model's own; empty: the model's
  std::vector<std::string> drafters;    // specs that requests may name; the first is the default
  SpeculationOptions speculation = {};  // default rule, tree and verify
  SamplingParams sampling = {};         // default
  BatchOptions batch = {};
  std::size_t max_waiting = 256;
  std::shared_ptr<Metrics> metrics = nullptr;     // of the server; null: separate ones
  std::shared_ptr<StepTurn> turn = nullptr;       // shared by the models of one process
  std::function<void(Batch&)> prepare = {};       // LoopOptions::prepare
  std::function<void(const Batch&)> finish = {};  // LoopOptions::finish
  int context = 0;         // limit of a prompt and its answer together; 0: the model's own
  double max_seconds = 0;  // of a request (GenerateOptions::max_seconds); 0: no limit
  MessageGuard guard = MessageGuard::none;  // against special tokens in messages
  std::string slot_folder = {};             // where texts are saved; empty: saving is disabled
};

// Immutable, except for the state of its loop. Thread-safe.
class ServedModel {
 public:
  ServedModel(std::shared_ptr<const Model> model, const ServedOptions& options);

  const std::string& name() const { return options_.name; }
  const ServedOptions& options() const { return options_; }
  const Model& model() const { return *loop_->model(); }
  const Tokenizer& tokenizer() const { return model().tokenizer(); }
  EngineLoop& loop() const { return *loop_; }
  Slots& slots() const { return *slots_; }
  Metrics& metrics() const { return *options_.metrics; }
  TextMetrics& text_metrics() const { return *text_metrics_; }
  int context() const { return context_; }
  std::time_t loaded_at() const { return loaded_at_; }

  bool has_chat_template() const { return template_.has_value(); }
  // Throws ApiError (400) if the model has none.
  const ChatTemplate& chat_template(bool with_tools) const;
  // How that template expects earlier turns.
  const HistoryForm& history_form(bool with_tools) const {
    return with_tools ? tool_history_form_ : history_form_;
  }
  // The model's form of tool calls and reasoning.
  const ReplyFormat& reply_format() const { return reply_format_; }
  // What ends the assistant's turn besides end tokens; as tokens where possible.
  std::span<const TokenId> turn_end_tokens() const { return turn_end_tokens_; }
  std::span<const std::string> turn_end_texts() const { return turn_end_texts_; }

 private:
  ServedOptions options_;
  std::shared_ptr<EngineLoop> loop_;
  std::unique_ptr<Slots> slots_;
  std::shared_ptr<TextMetrics> text_metrics_;
  int context_;
  std::time_t loaded_at_;
  std::optional<ChatTemplate> template_;
  std::optional<ChatTemplate> tool_template_;
  HistoryForm history_form_;
  HistoryForm tool_history_form_;
  ReplyFormat reply_format_;
  std::vector<TokenId> turn_end_tokens_;
  std::vector<std::string> turn_end_texts_;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_SERVED_MODEL_H_
