// SPDX-License-Identifier: Apache-2.0
#include "text_generator.h"

#include <algorithm>
#include <mutex>
#include <string_view>

namespace outrider::python {

TextGenerator::TextGenerator(std::shared_ptr<SharedModel> model,
                             const SpeculationOptions& speculation)
    : model_(std::move(model)), speculation_((check_speculation(speculation), speculation)) {
  const std::lock_guard turn(model_->turn);
  const std::size_t n_made = speculation_.own_drafter == nullptr ? 1 : 0;
  batch_ = std::make_unique<Batch>(model_->model, std::span(&speculation_.drafter, n_made),
                                   speculation_.drafter_options);
  if (n_made == 0) batch_->add_drafter(speculation_.drafter, speculation_.own_drafter);
  batch_->rule_scope(speculation_);  // a rule that does not accept the drafter is refused here
}

TextGenerator::~TextGenerator() {
  if (model_->turn.is_mine()) {  // the garbage collector ran within a callback of a pass
    model_->turn.leave([batch = std::shared_ptr<Batch>(std::move(batch_))]() mutable {});
    return;
  }
  try {
    const std::lock_guard turn(model_->turn);
    batch_.reset();
  } catch (const Error&) {  // a thread is blocked in a pass forever
    static_cast<void>(batch_.release());
  }
}

std::vector<std::shared_ptr<Text>> TextGenerator::start(std::vector<GenerateRequest> requests,
                                                        bool keeps_tokens) {
  const std::lock_guard turn(model_->turn);
  BatchOptions options = batch_->options();
  options.max_running =
      static_cast<int>(std::max<std::size_t>(active_.size() + requests.size(), 1));
  batch_->set_options(options);
  const bool plans_drafts = speculation_.adaptive && speculation_.drafter != "none";
  if (plans_drafts && active_.empty() && !batch_->has_measured_passes()) batch_->measure_passes();

  std::vector<std::shared_ptr<Text>> texts;
  try {
    for (GenerateRequest& request : requests) {
      auto text = std::make_shared<Text>();
      text->keeps_tokens = keeps_tokens;
      if (keeps_tokens) {
        request.options.on_token = [text = text.get(),
                                    with_log_probs =
                                        request.options.log_probs >= 0](const TokenEvent& event) {
          text->n_shown_bytes += event.text.size();
          Token token{.id = event.id,
                      .text = std::string(event.text),
                      .origin = event.origin,
                      .rank = event.rank,
                      .ends = event.ends};
          if (with_log_probs) {
            token.log_prob = event.log_prob;
            token.top.assign(event.top.begin(), event.top.end());
          }
          text->tokens.push_back(std::move(token));
        };
      }
      // The batch keeps the text alive as long as it may call back.
      text->id = batch_->submit(std::move(request), speculation_,
                                [text](GenerateResult result, std::exception_ptr error) {
                                  text->result = std::move(result);
                                  text->failed = error != nullptr;
                                  text->error = std::move(error);
                                  text->ended = true;
                                });
      texts.push_back(std::move(text));
    }
  } catch (...) {
    for (const auto& text : texts) cancel(*text);
    if (active_.empty()) {
      while (batch_->step()) {
      }
    } else {  // a later step ends them
      active_.insert(active_.end(), texts.begin(), texts.end());
    }
    throw;
  }
  active_.insert(active_.end(), texts.begin(), texts.end());
  return texts;
}

void TextGenerator::step() {
  const std::lock_guard turn(model_->turn);
  step_in_turn();
}

void TextGenerator::step_in_turn() {
  batch_->step();
  for (const auto& text : active_) {
    if (!text->ended || !text->keeps_tokens || text->error) continue;
    // Text held back as a possible stop string or an unfinished character is now final.
    const std::string_view rest = std::string_view(text->result.text).substr(text->n_shown_bytes);
    if (rest.empty()) continue;
    if (text->tokens.empty()) text->tokens.push_back({});
    text->tokens.back().text += rest;
  }
  std::erase_if(active_, [](const auto& text) { return text->ended.load(); });
}

void TextGenerator::finish(std::span<const std::shared_ptr<Text>> texts) {
  for (const auto& text : texts) {
    if (!text->ended) cancel(*text);
  }
  const auto is_done = [](const auto& text) { return text->ended.load(); };
  while (!std::all_of(texts.begin(), texts.end(), is_done)) step();
}

bool TextGenerator::is_left() const {
  const auto is_cancelled = [](const auto& text) { return text->cancelled.load(); };
  return !active_.empty() && std::all_of(active_.begin(), active_.end(), is_cancelled);
}

void TextGenerator::end_left() {
  if (!is_left()) return;
  if (model_->turn.is_mine()) {
    while (!active_.empty()) step_in_turn();
  } else {
    while (!active_.empty()) step();
  }
}

void TextGenerator::keep_last_text(bool keep) {
  const std::lock_guard turn(model_->turn);
  BatchOptions options = batch_->options();
  options.max_kept = keep ? 1 : 0;
  batch_->set_options(options);
}

}  // namespace outrider::python
