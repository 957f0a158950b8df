#include "outrider/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/speculation.h"
#include "engine/stop_strings.h"
#include "engine/verdict_recorder.h"
#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// One request on its way to a result: what the loop commits, as text and as figures.
class Generation {
 public:
  Generation(SequenceId id, const GenerateRequest& request, const Model& model, bool speculative)
      : options_(&request.options),
        model_(&model),
        speculative_(speculative),
        chance_(request.options.seed),
        stream_(id, request.prompt,
                Transform(request.options.sampling, model.summary().vocabulary_size), chance_),
        decoding_(model.tokenizer().start_decoding(false)),
        stop_strings_(stops_in_text(request.options.stop_strings)) {
    decode_prompt(request.prompt);
    stream_.max_total = std::min<std::int64_t>(stream_.n_prompt + options_->max_tokens,
                                               model.summary().context_length);
    stream_.finished = stream_.max_total <= stream_.n_prompt;
    reserve();
    if (const VerdictLog* log = options_->verdict_log) {
      recorder_.emplace(log->format(), request.prompt, log->most_generated(stream_.n_prompt));
    }
  }

  Stream& stream() { return stream_; }
  GenerateResult& result() { return result_; }

  // Takes one committed token; true ends the text.
  bool commit(const Committed& committed) {
    const LogitRow logits = stream_.views.logits(committed.logits_node);
    // NaN wins only where there is nothing else: such a row says nothing about any token.
    if (std::isnan(logits.at(committed.id))) {
      throw Error("generate", "logits", "numbers", "NaN (the model's weights may be broken)");
    }
    result_.ids.push_back(committed.id);
    if (recorder_) recorder_->add(committed.id, logits.values());
    if (options_->keep_logits) {
      const std::span<const float> values = logits.values();
      result_.logits.insert(result_.logits.end(), values.begin(), values.end());
    }
    const bool ends = ends_text(committed.id);
    // Many matrices have more rows than the vocabulary has tokens; such a row's id has no text.
    const bool is_token = model_->tokenizer().has(committed.id);
    const std::size_t n_before = result_.text.size();
    decoded_.clear();
    if (is_token && !ends) decoding_->push(committed.id, decoded_);
    take_decoded();
    const bool stops = ends || stop_strings_.found();
    if (stops) release_rest();
    if (stops) result_.finish_reason = FinishReason::stop;
    if (options_->on_token) {
      options_->on_token({.id = committed.id,
                          .origin = origin(committed),
                          .rank = committed.node >= 0 ? stream_.tree.rank(committed.node) : -1,
                          .text = std::string_view(result_.text).substr(n_before)});
    }
    return stops;
  }

  // Ends the text instead where the request was cancelled.
  void begin_round() {
    if (cancelled()) cancel();
    accepted_before_ = stream_.counts.accepted;
  }
  void end_round(const RoundTimes& times, std::int64_t drafter_passes) {
    GenerateStatistics& statistics = result_.statistics;
    statistics.draft_seconds += times.draft;
    statistics.verify_seconds += times.verify;
    statistics.drafter_passes += drafter_passes;
    result_.accepted_per_round.push_back(
        static_cast<int>(stream_.counts.accepted - accepted_before_));
  }

  bool cancelled() const {
    return options_->cancel != nullptr && options_->cancel->load(std::memory_order_relaxed);
  }
  void cancel() {
    stream_.finished = true;
    result_.finish_reason = FinishReason::cancelled;
  }

  void finish(double prefill_seconds, double decode_seconds) {
    release_rest();
    // What was held back may complete a stop string when it comes out.
    if (stop_strings_.found()) result_.finish_reason = FinishReason::stop;
    GenerateStatistics& statistics = result_.statistics;
    statistics.target_passes = stream_.counts.target_passes;
    statistics.drafted = stream_.counts.drafted;
    statistics.accepted = stream_.counts.accepted;
    statistics.rejected = stream_.counts.rejected;
    statistics.emitted = static_cast<std::int64_t>(result_.ids.size());
    const RuleCost& cost = stream_.counts.rule_cost;
    statistics.rule_kl = cost.kl;
    statistics.rule_tv = cost.total_variation;
    statistics.deferral_rate =
        result_.ids.empty() ? 0 : cost.deferral / static_cast<double>(result_.ids.size());
    statistics.prefill_seconds = prefill_seconds;
    statistics.decode_seconds = decode_seconds;
    if (recorder_) options_->verdict_log->append(recorder_->text());
  }

 private:
  bool ends_text(TokenId id) const {
    const auto holds = [id](const std::vector<TokenId>& ids) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    return holds(options_->stop_tokens) || holds(stop_tokens_) ||
           (!options_->ignore_eos && holds(model_->end_tokens()));
  }

  // Of the stop strings those that can stand in a text. A special token's spelling never does: the
  // token itself stops.
  std::vector<std::string> stops_in_text(const std::vector<std::string>& stops) {
    std::vector<std::string> in_text;
    for (const std::string& stop : stops) {
      const std::optional<TokenId> token = model_->tokenizer().find(stop);
      if (token && model_->tokenizer().is_special(*token)) {
        stop_tokens_.push_back(*token);
      } else {
        in_text.push_back(stop);
      }
    }
    return in_text;
  }

  // The text goes on behind its prompt: a first word keeps the blank that it would lose at the
  // beginning of a text, and a character that the prompt began is finished.
  void decode_prompt(std::span<const TokenId> prompt) {
    const auto alone = model_->tokenizer().start_decoding(false);
    std::string settled;
    for (const TokenId id : prompt) {
      if (!model_->tokenizer().has(id)) continue;
      decoding_->push(id, settled);
      alone->push(id, settled);
      settled.clear();
    }
    alone->finish(held_of_prompt_);
  }

  // What was decoded goes on to the text, less what the prompt's own text has of it: a run of byte
  // tokens at the prompt's end is held back until the run is over, whole characters and all.
  void take_decoded() {
    if (!held_of_prompt_.empty() && !decoded_.empty()) {
      if (decoded_.starts_with(held_of_prompt_)) decoded_.erase(0, held_of_prompt_.size());
      held_of_prompt_.clear();
    }
    stop_strings_.push(decoded_, result_.text);
  }

  // The text held back at the end: unfinished characters, beginnings of stop strings.
  // Nothing the second time: a decoding is finished once.
  void release_rest() {
    if (std::exchange(released_, true)) return;
    decoded_.clear();
    decoding_->finish(decoded_);
    take_decoded();
    stop_strings_.finish(result_.text);
  }

  // Memory for all that is kept of each token and round, so that committing one allocates nothing.
  void reserve() {
    // Four times what the tokens of running text hold; longer text grows as it must.
    constexpr std::size_t kBytesPerToken = 16;
    if (stream_.finished) return;
    const auto n_tokens = static_cast<std::size_t>(
        std::min(stream_.max_total - stream_.n_prompt, kReservedAhead_tokens));
    result_.ids.reserve(n_tokens);
    result_.accepted_per_round.reserve(n_tokens);
    result_.text.reserve(n_tokens * kBytesPerToken);
  }

  TokenOrigin origin(const Committed& committed) const {
    if (committed.node >= 0) return TokenOrigin::accepted;
    if (!speculative_ || stream_.tree.n_drafted() == 0) return TokenOrigin::plain;
    return stream_.verdict.corrected ? TokenOrigin::corrected : TokenOrigin::bonus;
  }

  const GenerateOptions* options_;
  const Model* model_;
  bool speculative_;
  CounterChance chance_;
  Stream stream_;
  std::unique_ptr<Tokenizer::Decoding> decoding_;
  std::string decoded_;               // of the last token
  std::string held_of_prompt_;        // text of the prompt that decoding_ has not given out yet
  std::vector<TokenId> stop_tokens_;  // of stop strings
  StopStrings stop_strings_;
  bool released_ = false;
  std::int64_t accepted_before_ = 0;  // when the round began
  std::optional<VerdictRecorder> recorder_;
  GenerateResult result_;
};

void check_request(const GenerateRequest& request, const Model& model,
                   const Speculation& speculation) {
  constexpr const char* kOperation = "generate";
  const int context = model.summary().context_length;
  const int vocabulary = model.summary().vocabulary_size;
  if (request.prompt.empty()) {
    throw Error(kOperation, "prompt", "at least one token", "none");
  }
  if (static_cast<std::int64_t>(request.prompt.size()) >= context) {
    throw Error(kOperation, "prompt",
                fmt::format("fewer tokens than the model's context of {}", context),
                fmt::format("{}", request.prompt.size()));
  }
  for (const TokenId id : request.prompt) {
    if (id < 0 || id >= vocabulary) {
      throw Error(kOperation, "prompt", fmt::format("token ids below {}", vocabulary),
                  fmt::format("{}", id));
    }
  }
  const VerdictLog* log = request.options.verdict_log;
  if (log != nullptr && !log->belongs_to(model)) {
    throw UsageError(kOperation, "verdict_log", "a log opened for the generator's target",
                     "one opened for another model");
  }
  // A sampling parameter out of its range is refused here, before anything has been run.
  const Transform transform(request.options.sampling, vocabulary);
  if (speculation.acceptance->needs().greedy && !transform.greedy()) {
    throw UsageError(kOperation, "temperature", fmt::format("0 with the rule {}", speculation.rule),
                     fmt::format("{}", request.options.sampling.temperature));
  }
  if (request.options.max_tokens < 0) {
    throw UsageError(kOperation, "max_tokens", "0 or more",
                     fmt::format("{}", request.options.max_tokens));
  }
}

}  // namespace

struct Generator::State {
  State(std::shared_ptr<const Model> target, const SpeculationOptions& options)
      : model(std::move(target)),
        speculation(make_speculation(*model, options)),
        decoder(make_decoder()) {}

  Decoder make_decoder() {
    return Decoder(model->language_model(), speculation.drafter.get(), *speculation.acceptance,
                   speculation.shape, speculation.stop.get());
  }

  std::int64_t drafter_passes() const {
    return speculation.drafter ? speculation.drafter->n_passes() : 0;
  }

  std::shared_ptr<const Model> model;
  Speculation speculation;
  Decoder decoder;
  SequenceId next_id = 0;
};

Generator::Generator(std::shared_ptr<const Model> model, const SpeculationOptions& speculation)
    : state_(std::make_unique<State>(std::move(model), speculation)) {}
Generator::~Generator() = default;
RuleScope Generator::rule_scope() const { return state_->speculation.scope; }
bool Generator::update_drafter() {
  State& state = *state_;
  if (!state.speculation.updates) return false;
  // No text is on its way between two calls, so that none ever sees two drafters.
  std::unique_ptr<Drafter> drafter = state.speculation.updates->take(*state.model);
  if (drafter == nullptr) return false;
  state.speculation.drafter = std::move(drafter);
  state.decoder = state.make_decoder();
  return true;
}
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

GenerateResult Generator::generate(std::string_view prompt, const GenerateOptions& options) {
  const GenerateRequest request{
      .prompt = state_->model->tokenizer().encode(prompt, options.add_special), .options = options};
  return std::move(generate({&request, 1}).front());
}

std::vector<GenerateResult> Generator::generate(std::span<const GenerateRequest> requests) {
  State& state = *state_;
  for (const GenerateRequest& request : requests)
    check_request(request, *state.model, state.speculation);

  // Streams do not move, and whatever happens the drafter forgets them.
  std::deque<Generation> generations;
  struct EndAll {
    std::deque<Generation>& generations;
    Decoder& decoder;
    ~EndAll() {
      for (Generation& generation : generations) decoder.end(generation.stream());
    }
  } end_all{generations, state.decoder};

  const SequenceId first_id = state.next_id;
  const auto prefill_started = Clock::now();
  for (const GenerateRequest& request : requests) {
    generations.emplace_back(state.next_id++, request, *state.model,
                             state.speculation.drafter != nullptr);
    Generation& generation = generations.back();
    const auto cancelled = [&generation] { return generation.cancelled(); };
    Stream& stream = generation.stream();
    if (!stream.finished && !state.decoder.begin(stream, cancelled)) generation.cancel();
  }
  const double prefill_seconds = seconds_since(prefill_started);

  const auto decode_started = Clock::now();
  std::vector<Stream*> streams;
  streams.reserve(generations.size());
  for (Generation& generation : generations) streams.push_back(&generation.stream());
  const auto generation_of = [&](const Stream& stream) -> Generation& {
    return generations[static_cast<std::size_t>(stream.id - first_id)];
  };
  std::int64_t passes_before = 0;
  RoundHooks hooks;
  hooks.before = [&](std::span<Stream* const> round) {
    for (const Stream* stream : round) generation_of(*stream).begin_round();
    passes_before = state.drafter_passes();
  };
  hooks.after = [&](std::span<Stream* const> round, const RoundTimes& times) {
    const std::int64_t n_passes = state.drafter_passes() - passes_before;
    for (const Stream* stream : round) generation_of(*stream).end_round(times, n_passes);
  };
  const CommitFunction on_commit = [&](Stream& stream, const Committed& committed) {
    return generation_of(stream).commit(committed);
  };
  state.decoder.run_to_end(streams, on_commit, hooks);
  const double decode_seconds = seconds_since(decode_started);

  std::vector<GenerateResult> results;
  for (Generation& generation : generations) {
    generation.finish(prefill_seconds, decode_seconds);
    results.push_back(std::move(generation.result()));
  }
  return results;
}

}  // namespace outrider
