// A model as the endpoints see it: its name, its loop, and what requests take where they say
// nothing.
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
#include "server/history_form.h"
#include "server/metrics.h"
#include "server/slots.h"

namespace outrider::server {

struct ServedOptions {
  std::string name;                     // what clients call it
  std::string chat_template = {};       // in the place of the model's own; empty: that
  std::vector<std::string> drafters;    // specs that requests may name; the first is the default
  SpeculationOptions speculation = {};  // rule, tree and verify where a request says nothing
  SamplingParams sampling = {};         // likewise
  BatchOptions batch = {};
  std::size_t most_waiting = 256;
  std::shared_ptr<Metrics> metrics = nullptr;     // of the server; null: the model's own
  std::shared_ptr<StepTurn> turn = nullptr;       // of models that run in one process
  std::function<void(Batch&)> prepare = {};       // LoopOptions::prepare
  std::function<void(const Batch&)> finish = {};  // LoopOptions::finish
  int context = 0;         // most tokens of a prompt and its answer together; 0: the model's own
  double max_seconds = 0;  // of a request (GenerateOptions::max_seconds); 0: no bound
  MessageGuard guard = MessageGuard::none;  // against special tokens that messages spell
  std::string slot_folder = {};             // where texts are saved; empty: nowhere
};

// Immutable but for what its loop does. Thread-safe.
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
  // Throws ApiError (400) where the model has none.
  const ChatTemplate& chat_template(bool with_tools) const;
  // How that template takes what was said before.
  const HistoryForm& history_form(bool with_tools) const {
    return with_tools ? tool_history_form_ : history_form_;
  }
  // How it writes calls of tools and reasoning.
  const ReplyFormat& reply_format() const { return reply_format_; }
  // What ends the assistant's turn besides end tokens: as tokens where they are tokens.
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
