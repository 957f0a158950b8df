// SPDX-License-Identifier: Apache-2.0
#include "eval/frontiers/sequential_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/batch/generation.h"
#include "engine/batch/stop_strings.h"
#include "engine/speculation.h"
#include "outrider/error.h"
#include "sampling/counter_chance.h"

namespace outrider::eval {
namespace {

// Detects the end of one text while it is written.
class Ending {
 public:
  Ending(const Model& model, const GenerateOptions& options)
      : model_(&model),
        options_(&options),
        decoder_(std::make_unique<StreamingDecoder>(model.tokenizer())),
        stop_strings_(options.stop_strings) {}

  // True if this token was the last.
  bool take(TokenId id) {
    const bool is_token = model_->tokenizer().has(id);
    stop_strings_.push(is_token ? decoder_->push(id) : std::string(), text_);
    const auto holds = [id](const std::vector<TokenId>& ids) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    stopped_ = holds(options_->stop_tokens) ||
               (!options_->ignore_eos && holds(model_->end_tokens())) || stop_strings_.found();
    return stopped_;
  }

  // The whole text, including text held back; call it once.
  std::string finish() {
    stop_strings_.push(decoder_->finish(), text_);
    stop_strings_.finish(text_);
    stopped_ = stopped_ || stop_strings_.found();
    return std::move(text_);
  }
  bool stopped() const { return stopped_; }

 private:
  const Model* model_;
  const GenerateOptions* options_;
  std::unique_ptr<StreamingDecoder> decoder_;
  StopStrings stop_strings_;
  std::string text_;
  bool stopped_ = false;
};

void check(const GenerateRequest& request, const Model& model, const Transform& transform,
           bool greedy) {
  check_encoder_prompt(request, model);
  constexpr const char* kOperation = "generate";
  const int context = model.summary().context_length;
  if (request.prompt.empty() || request.prompt.size() >= static_cast<std::size_t>(context)) {
    throw Error(kOperation, "prompt",
                fmt::format("from one token to fewer than the model's context of {}", context),
                fmt::format("{}", request.prompt.size()));
  }
  for (const TokenId id : request.prompt) {
    if (id < 0 || id >= model.summary().vocabulary_size) {
      throw Error(kOperation, "prompt",
                  fmt::format("token ids below {}", model.summary().vocabulary_size),
                  fmt::format("{}", id));
    }
  }
  if (greedy && !transform.greedy()) {
    throw UsageError(kOperation, "temperature", "0 with this cascade",
                     fmt::format("{}", request.options.sampling.temperature));
  }
}

}  // namespace

SequentialGenerator::SequentialGenerator(std::shared_ptr<const Model> model,
                                         const SpeculationOptions& speculation,
                                         const std::string& cascade)
    : model_(std::move(model)),
      drafter_(load_drafter_model(*model_, speculation)),
      cascade_(model_->language_model(), *drafter_, cascade) {}

GenerateResult SequentialGenerator::generate(const GenerateRequest& given) {
  GenerateRequest request = given;
  part_encoder_prompt(request, *model_);
  const GenerateOptions& options = request.options;
  const Transform transform(options.sampling, model_->summary().vocabulary_size);
  check(request, *model_, transform, cascade_.greedy());
  CounterChance chance(options.seed);
  std::shared_ptr<Ending> ending = std::make_shared<Ending>(*model_, options);
  // Reading prompts does not count as decoding, as in Generator.
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begun = Clock::now();
  Clock::time_point started = begun;
  bool read_prompt = false;
  const SequentialText written = cascade_.generate(
      {.prompt = request.prompt,
       .encoder_prompt = request.encoder_prompt,
       .max_tokens = options.max_tokens,
       .transform = &transform,
       .chance = &chance,
       .ending =
           [&] {
             // A sequence cascade's second text replaces the first.
             ending = std::make_shared<Ending>(*model_, options);
             if (!std::exchange(read_prompt, true)) started = Clock::now();
             return [ending](TokenId id) { return ending->take(id); };
           },
       .cancelled =
           [&options] {
             return options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed);
           }});
  GenerateResult result;
  result.ids = written.ids;
  result.text = ending->finish();
  result.finish_reason = written.cancelled   ? FinishReason::cancelled
                         : ending->stopped() ? FinishReason::stop
                                             : FinishReason::length;
  GenerateStatistics& statistics = result.statistics;
  statistics.target_passes = written.target_passes;
  statistics.drafter_passes = written.drafter_passes;
  statistics.emitted = static_cast<std::int64_t>(written.ids.size());
  statistics.rule_kl = written.cost.kl;
  statistics.rule_tv = written.cost.total_variation;
  statistics.deferral_rate =
      written.ids.empty() ? 0 : written.cost.deferral / static_cast<double>(written.ids.size());
  const auto seconds = [](Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  statistics.prefill_seconds = seconds(started - begun) + written.second_prompt_seconds;
  statistics.decode_seconds = seconds(Clock::now() - started) - written.second_prompt_seconds;
  return result;
}

}  // namespace outrider::eval
