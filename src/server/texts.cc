// SPDX-License-Identifier: Apache-2.0
#include "server/texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

namespace outrider::server {
namespace {

// State shared by the threads that submit, run and watch the client.
class Exchange {
 public:
  Exchange(std::shared_ptr<const ServedModel> model, std::shared_ptr<TextSink> sink,
           std::size_t n_texts)
      : model_(std::move(model)),
        sink_(std::move(sink)),
        last_token_(n_texts, Clock::now()),
        has_token_(n_texts, false),
        n_left_(n_texts) {}

  void token(int choice, const TokenEvent& event) {
    tell([&] {
      measure(static_cast<std::size_t>(choice));
      sink_->token(choice, event);
    });
  }

  void end(int choice, std::size_t n_prompt, GenerateResult result,
           const std::exception_ptr& error) {
    if (error) {
      model_->text_metrics().failed();
    } else {
      model_->text_metrics().ended(result, n_prompt);
    }
    tell([&] {
      if (error) std::rethrow_exception(error);
      sink_->end(choice, std::move(result));
      if (--n_left_ > 0) return;
      over_ = true;
      sink_->all_ended();
    });
  }

  void submitted(RequestId id) {
    const std::lock_guard lock(mutex_);
    ids_.push_back(id);
  }

  // The results are not needed any more.
  void cancel() {
    std::vector<RequestId> ids;
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      ids = ids_;
    }
    for (const RequestId id : ids) model_->loop().cancel(id);
  }

  bool over() const {
    const std::lock_guard lock(mutex_);
    return over_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void measure(std::size_t choice) {
    const auto now = Clock::now();
    const auto waited = now - std::exchange(last_token_[choice], now);
    if (has_token_[choice]) return model_->text_metrics().next_token(waited);
    has_token_[choice] = true;
    model_->text_metrics().first_token(waited);
  }

  // No exception reaches the batch, where it would end all texts.
  template <typename Call>
  void tell(const Call& call) {
    {
      const std::lock_guard lock(mutex_);
      if (over_) return;
      try {
        return call();
      } catch (...) {
        over_ = true;
        sink_->failed(api_error_of(std::current_exception()));
      }
    }
    cancel();
  }

  std::shared_ptr<const ServedModel> model_;
  std::shared_ptr<TextSink> sink_;
  std::vector<Clock::time_point> last_token_;  // per text; before its first token, its arrival
  std::vector<bool> has_token_;
  mutable std::mutex mutex_;
  std::vector<RequestId> ids_;
  std::size_t n_left_;
  bool over_ = false;
};

}  // namespace

void run_texts(const std::shared_ptr<const ServedModel>& model, AskedTexts texts,
               const std::shared_ptr<HttpReply>& reply, std::shared_ptr<TextSink> sink) {
  const auto exchange = std::make_shared<Exchange>(model, std::move(sink), texts.requests.size());
  int choice = 0;
  try {
    for (GenerateRequest& request : texts.requests) {
      request.options.on_token =
          [exchange, choice, first = std::move(request.options.on_token)](const TokenEvent& event) {
            if (first) first(event);
            exchange->token(choice, event);
          };
      const std::size_t n_prompt = request.prompt.size();
      const RequestId id = model->loop().submit(
          std::move(request), texts.speculation,
          [exchange, choice, n_prompt](GenerateResult result, const std::exception_ptr& error) {
            exchange->end(choice, n_prompt, std::move(result), error);
          });
      exchange->submitted(id);
      if (choice == 0 && texts.slot >= 0) model->slots().put(texts.slot, id);
      ++choice;
    }
  } catch (...) {
    const bool answered = exchange->over();
    exchange->cancel();
    if (answered) return;  // an earlier one has failed and was answered
    throw;
  }
  if (exchange->over()) exchange->cancel();  // one failed before the last was submitted
  reply->on_gone([exchange] { exchange->cancel(); });
}

std::vector<GenerateRequest> requests_of(const ServedModel& model, std::vector<TokenId> prompt,
                                         GenerateOptions options, int n_choices) {
  const int context = model.context();
  // The encoder reads the prompt: the text begins with one token.
  const bool has_encoder = model.model().summary().n_encoder_layers > 0;
  const auto n_prompt = static_cast<std::int64_t>(prompt.size());
  const std::int64_t most = has_encoder ? context : context - 1;
  if (n_prompt > most) {
    throw ApiError(400,
                   fmt::format("the prompt has {} tokens: expected at most {} (the context has {})",
                               n_prompt, most, context),
                   "messages", "context_length_exceeded");
  }
  const int n_before = has_encoder ? 1 : static_cast<int>(n_prompt);
  options.max_tokens = std::min(options.max_tokens, context - n_before);
  std::vector<GenerateRequest> requests;
  requests.reserve(static_cast<std::size_t>(n_choices));
  for (int i = 0; i < n_choices; ++i) {
    requests.push_back({.prompt = prompt, .options = options});
    requests.back().options.seed += static_cast<std::uint64_t>(i);
  }
  return requests;
}

}  // namespace outrider::server
