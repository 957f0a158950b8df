// SPDX-License-Identifier: Apache-2.0
#include "outrider/generate.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "engine/speculation.h"
#include "outrider/batch.h"
#include "outrider/tokenizer.h"

namespace outrider {

const char* name_of(TokenOrigin origin) {
  switch (origin) {
    case TokenOrigin::plain:
      return "plain";
    case TokenOrigin::accepted:
      return "accepted";
    case TokenOrigin::corrected:
      return "corrected";
    case TokenOrigin::bonus:
      break;
  }
  return "bonus";
}

const char* name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::time:
      return "time";
    case FinishReason::cancelled:
      break;
  }
  return "cancelled";
}

struct Generator::State {
  State(std::shared_ptr<const Model> target, const SpeculationOptions& options)
      : model(std::move(target)),
        speculation((check_speculation(options), options)),
        batch(model, std::span(&speculation.drafter, speculation.own_drafter == nullptr ? 1 : 0),
              options.drafter_options) {
    if (speculation.own_drafter != nullptr) {
      batch.add_drafter(speculation.drafter, speculation.own_drafter);
    }
    batch.rule_scope(speculation);  // refuses a rule that does not accept the drafter
  }

  bool plans_drafts() const { return speculation.adaptive && speculation.drafter != "none"; }

  std::shared_ptr<const Model> model;
  SpeculationOptions speculation;
  Batch batch;
};

Generator::Generator(std::shared_ptr<const Model> model, const SpeculationOptions& speculation)
    : state_(std::make_unique<State>(std::move(model), speculation)) {}
Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

RuleScope Generator::rule_scope() const { return state_->batch.rule_scope(state_->speculation); }

bool Generator::update_drafter() { return state_->batch.update_drafters(); }

void Generator::measure_passes() {
  if (state_->plans_drafts()) state_->batch.measure_passes();
}

void Generator::save_drafting_profile(const std::filesystem::path& file) const {
  state_->batch.save_drafting_profile(file);
}

void Generator::load_drafting_profile(const std::filesystem::path& file) {
  state_->batch.load_drafting_profile(file);
}

void Generator::keep_last_text(bool keep) {
  BatchOptions options = state_->batch.options();
  options.max_kept = keep ? 1 : 0;
  state_->batch.set_options(options);
}

void Generator::observe_rounds(std::shared_ptr<RoundObserver> observer) {
  BatchOptions options = state_->batch.options();
  options.observer = std::move(observer);
  state_->batch.set_options(options);
}

GenerateResult Generator::generate(std::string_view prompt, const GenerateOptions& options) {
  const GenerateRequest request{
      .prompt = state_->model->tokenizer().encode(prompt, options.add_special), .options = options};
  return std::move(generate({&request, 1}).front());
}

std::vector<GenerateResult> Generator::generate(std::span<const GenerateRequest> requests) {
  Batch& batch = state_->batch;
  BatchOptions options = batch.options();
  options.max_running = static_cast<int>(std::max<std::size_t>(requests.size(), 1));
  batch.set_options(options);
  if (state_->plans_drafts() && !batch.has_measured_passes()) batch.measure_passes();

  // Shared with the callbacks: if step() throws, the batch may outlive this call.
  struct Call {
    std::vector<GenerateResult> results;
    std::vector<RequestId> ids;
    std::exception_ptr error;
  };
  const auto call = std::make_shared<Call>();
  call->results.resize(requests.size());
  // The first error ends all texts.
  const auto fail = [&batch](Call& of, std::exception_ptr what) {
    if (!of.error) of.error = std::move(what);
    for (const RequestId id : of.ids) batch.cancel(id);
  };
  for (std::size_t index = 0; index < requests.size() && !call->error; ++index) {
    const auto on_end = [call, fail, index](GenerateResult result, std::exception_ptr what) {
      call->results[index] = std::move(result);
      if (what) fail(*call, std::move(what));
    };
    try {
      call->ids.push_back(batch.submit(requests[index], state_->speculation, on_end));
    } catch (...) {
      fail(*call, std::current_exception());
    }
  }
  while (batch.step()) {
  }
  if (call->error) std::rethrow_exception(call->error);
  return std::move(call->results);
}

}  // namespace outrider
