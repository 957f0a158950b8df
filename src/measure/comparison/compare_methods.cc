// SPDX-License-Identifier: Apache-2.0
#include "outrider/compare_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/checksum.h"
#include "outrider/chat.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kOperation = "compare methods";

// Enough rounds for buffers to grow, weights to be loaded and threads to be awake.
constexpr int kWarmUp_tokens = 16;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Drafts of a text's rounds, and their outcome.
class OutcomeCounts {
 public:
  void add(const DraftEvent& event) {
    levels_.clear();
    int deepest = 0;
    for (const int parent : event.parents) {
      levels_.push_back(parent < 0 ? 1 : levels_[static_cast<std::size_t>(parent)] + 1);
      deepest = std::max(deepest, levels_.back());
    }
    const auto n_accepted = std::count(event.accepted.begin(), event.accepted.end(), 1);
    ++counts_[{deepest, static_cast<int>(event.tokens.size()), static_cast<int>(n_accepted)}];
  }
  void add_plain(std::int64_t n_rounds) { counts_[{0, 0, 0}] += n_rounds; }

  std::vector<DraftOutcome> take() const {
    std::vector<DraftOutcome> outcomes;
    outcomes.reserve(counts_.size());
    for (const auto& [key, n] : counts_) {
      const auto& [levels, nodes, accepted] = key;
      outcomes.push_back({.levels = levels, .nodes = nodes, .accepted = accepted, .n = n});
    }
    return outcomes;
  }

 private:
  std::map<std::tuple<int, int, int>, std::int64_t> counts_;
  std::vector<int> levels_;  // for the event's nodes
};

// Makes requests for the turns of prompts, as conversations or as plain texts.
class RequestMaker {
 public:
  RequestMaker(const Model& model, const CompareOptions& options)
      : tokenizer_(&model.tokenizer()), options_(&options) {
    base_.max_tokens = options.max_tokens;
    base_.cancel = options.cancel;
    if (options.raw || tokenizer_->chat_template().empty()) return;
    template_ = chat_template_of(*tokenizer_);
    for (std::string& marker : turn_ends(*template_, *tokenizer_)) {
      // A special token never appears in the text: it is matched as a token.
      if (const auto id = tokenizer_->find(marker)) {
        base_.stop_tokens.push_back(*id);
      } else {
        base_.stop_strings.push_back(std::move(marker));
      }
    }
  }

  // `answers`: to the earlier turns. Throws Error if the template refuses the messages.
  GenerateRequest request(const ComparedPrompt& prompt, std::span<const std::string> answers,
                          double temperature) const {
    const std::size_t turn = answers.size();
    GenerateRequest request{.prompt = tokens(prompt, answers), .options = base_};
    request.options.sampling.temperature = temperature;
    request.options.seed = seed_of(prompt, turn);
    return request;
  }

 private:
  std::vector<TokenId> tokens(const ComparedPrompt& prompt,
                              std::span<const std::string> answers) const {
    if (template_) {
      std::vector<ChatMessage> messages;
      messages.reserve(2 * answers.size() + 1);
      for (std::size_t turn = 0; turn < answers.size(); ++turn) {
        messages.push_back({.role = "user", .content = prompt.turns[turn]});
        messages.push_back({.role = "assistant", .content = answers[turn]});
      }
      messages.push_back({.role = "user", .content = prompt.turns[answers.size()]});
      return encode_chat(*template_, *tokenizer_, messages, MessageGuard::none);
    }
    std::string text;
    for (std::size_t turn = 0; turn < answers.size(); ++turn) {
      text += prompt.turns[turn] + "\n" + answers[turn] + "\n";
    }
    return tokenizer_->encode(text + prompt.turns[answers.size()], /*add_special=*/true);
  }

  // Depends on the prompt's name, not its index: a subset of the prompts has the same seeds.
  std::uint64_t seed_of(const ComparedPrompt& prompt, std::size_t turn) const {
    const std::string name = fmt::format("{}\n{}\n{}", prompt.set, prompt.id, turn);
    return checksum(std::as_bytes(std::span(name)), options_->seed);
  }

  const Tokenizer* tokenizer_;
  const CompareOptions* options_;
  std::optional<ChatTemplate> template_;
  GenerateOptions base_;
};

// Runs rounds. Not thread-safe.
class RoundRunner {
 public:
  RoundRunner(const std::shared_ptr<const Model>& model, const CompareOptions& options)
      : model_(model), options_(&options), requests_(*model, options) {
    for (const ComparedMethod& method : options.methods) {
      if (options.progress) options.progress("loading " + method.name, 0);
      generators_.emplace_back(model, method.speculation);
      if (options.on_begin) options.on_begin(generators_.size() - 1, generators_.back());
    }
    warm_up();
  }

  void end() {
    for (std::size_t method = 0; options_->on_end && method < generators_.size(); ++method) {
      options_->on_end(method, generators_[method]);
    }
  }

  bool cancelled() const { return options_->cancel != nullptr && options_->cancel->load(); }

  // `first`: the method that begins, in rotation. Returns nothing if cancelled.
  std::optional<ComparedRound> run(std::size_t prompt, double temperature, int repeat,
                                   std::size_t first, double share_done) {
    ComparedRound round{
        .prompt = prompt, .temperature = temperature, .repeat = repeat, .samples = {}};
    const std::size_t n_methods = generators_.size();
    std::vector<MethodSample> samples(n_methods);
    std::vector<OutcomeCounts> outcomes(n_methods);
    std::vector<std::string> answers;  // plain decoding's
    std::int64_t n_before = 0;         // in tokens
    const ComparedPrompt& asked = options_->prompts[prompt];
    for (std::size_t turn = 0; turn < asked.turns.size(); ++turn) {
      std::optional<GenerateRequest> request = request_of(asked, answers, temperature, round);
      if (!request) return round;
      std::vector<GenerateResult> results(n_methods);
      for (std::size_t step = 0; step < n_methods; ++step) {
        const std::size_t method = (first + step) % n_methods;
        if (options_->progress) {
          options_->progress(
              fmt::format("{} {}, turn {}, temperature {}: {}", asked.category, asked.id, turn + 1,
                          temperature, options_->methods[method].name),
              share_done);
        }
        results[method] = decode(method, *request, samples[method], outcomes[method]);
        if (cancelled()) return std::nullopt;
      }
      for (std::size_t method = 0; method < n_methods; ++method) {
        compare(results[method].ids, results.front().ids, n_before, samples[method]);
      }
      n_before += static_cast<std::int64_t>(results.front().ids.size());
      answers.push_back(std::move(results.front().text));
    }
    for (std::size_t method = 0; method < n_methods; ++method) {
      samples[method].outcomes = outcomes[method].take();
    }
    round.samples = std::move(samples);
    return round;
  }

 private:
  // On a prompt of the set: on other texts, a method with planned drafts would learn that none
  // pays.
  void warm_up() {
    ComparedRound unused;
    for (const ComparedPrompt& prompt : options_->prompts) {
      std::optional<GenerateRequest> request =
          request_of(prompt, {}, options_->temperatures.front(), unused);
      if (!request) continue;
      request->options.max_tokens = std::min(options_->max_tokens, kWarmUp_tokens);
      for (std::size_t method = 0; method < generators_.size(); ++method) {
        if (options_->progress)
          options_->progress("warming up " + options_->methods[method].name, 0);
        generators_[method].generate({&*request, 1});
      }
      return;
    }
  }

  // Returns nothing if the prompt cannot be run; `round` then holds the reason.
  std::optional<GenerateRequest> request_of(const ComparedPrompt& prompt,
                                            std::span<const std::string> answers,
                                            double temperature, ComparedRound& round) const {
    try {
      GenerateRequest request = requests_.request(prompt, answers, temperature);
      const auto n_tokens = static_cast<int>(request.prompt.size());
      const int room = model_->summary().context_length;
      if (n_tokens > 0 && n_tokens < room) return request;
      round.problem =
          fmt::format("turn {}: {} tokens in a context of {}", answers.size() + 1, n_tokens, room);
    } catch (const Error& error) {
      round.problem = error.what();
    }
    return std::nullopt;
  }

  GenerateResult decode(std::size_t method, GenerateRequest request, MethodSample& sample,
                        OutcomeCounts& outcomes) {
    const bool drafts = options_->methods[method].speculation.drafter != "none";
    std::optional<double> first_token_seconds;
    Clock::time_point begun;
    request.options.on_token = [&](const TokenEvent&) {
      if (!first_token_seconds) first_token_seconds = seconds_since(begun);
    };
    if (drafts) {
      request.options.on_draft = [&](const DraftEvent& event) { outcomes.add(event); };
    }
    begun = Clock::now();
    GenerateResult result = std::move(generators_[method].generate({&request, 1}).front());
    const double request_seconds = seconds_since(begun);
    const GenerateStatistics& statistics = result.statistics;
    if (!drafts) outcomes.add_plain(statistics.target_passes);
    sample.request_seconds += request_seconds;
    sample.first_token_seconds += first_token_seconds.value_or(request_seconds);
    sample.prefill_seconds += statistics.prefill_seconds;
    sample.decode_seconds += statistics.decode_seconds;
    sample.draft_seconds += statistics.draft_seconds;
    sample.target_seconds += statistics.target_seconds;
    sample.verify_seconds += statistics.verify_seconds;
    sample.prompt_tokens += static_cast<std::int64_t>(request.prompt.size());
    sample.emitted += statistics.emitted;
    sample.target_passes += statistics.target_passes;
    sample.drafter_passes += statistics.drafter_passes;
    sample.drafted += statistics.drafted;
    return result;
  }

  static void compare(std::span<const TokenId> ids, std::span<const TokenId> plain,
                      std::int64_t n_before, MethodSample& sample) {
    sample.ids_digest = checksum(std::as_bytes(ids), sample.ids_digest);
    if (sample.first_difference >= 0) return;
    const auto [id, plain_id] = std::mismatch(ids.begin(), ids.end(), plain.begin(), plain.end());
    if (id == ids.end() && plain_id == plain.end()) return;
    sample.first_difference = n_before + (id - ids.begin());
  }

  std::shared_ptr<const Model> model_;
  const CompareOptions* options_;
  RequestMaker requests_;
  std::vector<Generator> generators_;
};

}  // namespace

int typical_context(const Model& model, const CompareOptions& options) {
  const RequestMaker requests(model, options);
  std::vector<std::size_t> lengths;
  lengths.reserve(options.prompts.size());
  for (const ComparedPrompt& prompt : options.prompts) {
    try {
      lengths.push_back(requests.request(prompt, {}, 0).prompt.size());
    } catch (const Error&) {
      // The template refuses it, and the round will report that.
    }
  }
  const int half_answer = options.max_tokens / 2;
  if (lengths.empty()) return half_answer;
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return static_cast<int>(*middle) + half_answer;
}

void check_comparison(const CompareOptions& options) {
  const auto require = [](bool holds, const char* what, const char* expected,
                          const std::string& got) {
    if (!holds) throw UsageError(kOperation, what, expected, got);
  };
  require(!options.methods.empty() && options.methods.front().speculation.drafter == "none",
          "methods", "plain decoding first", options.methods.empty() ? "none" : "another");
  require(options.methods.size() > 1, "methods", "one beside plain decoding", "none");
  require(!options.prompts.empty(), "prompts", "at least one", "none");
  require(!options.temperatures.empty(), "temperatures", "at least one", "none");
  std::set<double> known;
  for (const double temperature : options.temperatures) {
    // Written so that NaN is refused.
    require(temperature >= 0 && std::isfinite(temperature), "temperature", "0 or more",
            fmt::format("{}", temperature));
    require(known.insert(temperature).second, "temperatures", "each once",
            fmt::format("{} twice", temperature));
  }
  require(options.max_tokens >= 2, "max_tokens", "2 or more",
          fmt::format("{}", options.max_tokens));
  require(options.repeats >= 1, "repeats", "1 or more", fmt::format("{}", options.repeats));
  for (const ComparedMethod& method : options.methods) check_speculation(method.speculation);
}

std::vector<ComparedRound> compare_methods(const std::shared_ptr<const Model>& model,
                                           const CompareOptions& options) {
  check_comparison(options);
  const std::size_t n_all = static_cast<std::size_t>(options.repeats) * options.prompts.size() *
                            options.temperatures.size();
  const std::size_t n_of_repeat = options.prompts.size() * options.temperatures.size();
  std::vector<ComparedRound> rounds;
  std::optional<RoundRunner> runner;  // drafters are loaded once there is something to measure
  for (std::size_t n_done = 0; n_done < n_all; ++n_done) {
    const auto repeat = static_cast<int>(n_done / n_of_repeat);
    const std::size_t prompt = n_done % n_of_repeat / options.temperatures.size();
    const std::size_t index = n_done % options.temperatures.size();
    const double temperature = options.temperatures[index];
    const double share_done = static_cast<double>(n_done) / static_cast<double>(n_all);
    if (options.is_known && options.is_known(prompt, temperature, repeat)) continue;
    if (options.goes_on && !options.goes_on()) break;
    if (!runner) runner.emplace(model, options);
    if (runner->cancelled()) break;
    std::optional<ComparedRound> round = runner->run(
        prompt, temperature, repeat, prompt + index + static_cast<std::size_t>(repeat), share_done);
    if (!round) break;
    if (options.on_round) options.on_round(*round);
    rounds.push_back(*std::move(round));
  }
  if (runner) runner->end();
  return rounds;
}

}  // namespace outrider
