// SPDX-License-Identifier: Apache-2.0
#include "server/served_model.h"

#include <algorithm>
#include <utility>

#include "outrider/chat.h"
#include "outrider/error.h"
#include "server/api_error.h"

namespace outrider::server {
namespace {

int context_of(const Model& model, int asked) {
  const int own = model.summary().context_length;
  return asked > 0 ? std::min(asked, own) : own;
}

}  // namespace

ServedModel::ServedModel(std::shared_ptr<const Model> model, const ServedOptions& options)
    : options_(options),
      loop_(std::make_shared<EngineLoop>(std::move(model), options_.drafters,
                                         options_.speculation.drafter_options, options_.batch,
                                         LoopOptions{.max_waiting = options_.max_waiting,
                                                     .turn = options_.turn,
                                                     .prepare = options_.prepare,
                                                     .finish = options_.finish})),
      slots_(std::make_unique<Slots>(static_cast<std::size_t>(options_.batch.max_running))),
      context_(context_of(*loop_->model(), options_.context)),
      loaded_at_(std::time(nullptr)) {
  // Invalid specs are refused here, not with the first request.
  SpeculationOptions defaults = options_.speculation;
  defaults.drafter = options_.drafters.empty() ? "none" : options_.drafters.front();
  check_speculation(defaults);
  if (options_.metrics == nullptr) options_.metrics = std::make_shared<Metrics>();
  text_metrics_ = options_.metrics->of_model(
      options_.name, [loop = std::weak_ptr<EngineLoop>(loop_)]() -> BatchLoad {
        const auto held = loop.lock();
        return held == nullptr ? BatchLoad{} : held->load();
      });
  if (!options_.chat_template.empty()) {
    template_ = ChatTemplate(options_.chat_template);
    tool_template_ = template_;
    reply_format_ = find_reply_format(options_.chat_template, &tokenizer());
  } else if (!tokenizer().chat_template().empty()) {
    template_ = outrider::chat_template_of(tokenizer());
    tool_template_ = outrider::chat_template_of(tokenizer(), true);
    reply_format_ = find_reply_format(tokenizer().tool_template(), &tokenizer());
  } else {
    return;
  }
  history_form_ = find_history_form(*template_, &tokenizer());
  const bool one_template =
      !options_.chat_template.empty() || tokenizer().tool_template() == tokenizer().chat_template();
  tool_history_form_ =
      one_template ? history_form_ : find_history_form(*tool_template_, &tokenizer());
  for (std::string& marker : turn_ends(*template_, tokenizer())) {
    if (const auto id = tokenizer().find(marker)) {
      turn_end_tokens_.push_back(*id);
    } else {
      turn_end_texts_.push_back(std::move(marker));
    }
  }
}

const ChatTemplate& ServedModel::chat_template(bool with_tools) const {
  if (!template_) {
    throw ApiError(400, "this model has no chat template: use /v1/completions", "messages");
  }
  return with_tools ? *tool_template_ : *template_;
}

}  // namespace outrider::server
