// SPDX-License-Identifier: Apache-2.0
#include "measure/simulated_acceptance.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "engine/drafting/make_tree_shape.h"
#include "engine/speculation.h"
#include "measure/arbitrary_tokens.h"
#include "measure/simulated_drafter.h"
#include "measure/spread.h"
#include "outrider/error.h"
#include "outrider/measure.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "speculate/registry/drafter_registry.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kOperation = "simulate acceptance";

// Tokens of a warm-up text: enough rounds for buffers to grow, weights to be loaded and threads to
// be awake.
constexpr int kWarmUp_tokens = 16;

// One decoded text.
struct DecodedText {
  std::vector<TokenId> ids;  // the generated ones
  StreamCounts counts;
  std::int64_t drafter_passes = 0;
  double seconds = 0;  // of decoding, without the prompt
  RoundTimes times;    // included in it
};

// A way of decoding one prompt, repeatedly: with a drafter and a shape of drafts, or without.
class Way {
 public:
  // drafter: null for plain decoding. All must outlive it.
  Way(const Model& model, Drafter* drafter, const Speculation& speculation,
      std::shared_ptr<const TreeShape> shape)
      : model_(&model),
        drafter_(drafter),
        decoder_(model.language_model(), drafter, *speculation.acceptance, std::move(shape),
                 speculation.stop.get()) {}

  // Decodes max_tokens tokens at temperature 0; end tokens do not end the text. `between` is called
  // before every pass of the prompt and every round; what it throws ends the decoding. Throws Error
  // for a NaN logit.
  DecodedText decode(std::span<const TokenId> prompt, int max_tokens,
                     const std::function<void()>& between) {
    CounterChance chance(0);  // nothing is drawn at temperature 0
    Stream stream(next_id_++, prompt, Transform({}, model_->summary().vocabulary_size), chance);
    stream.max_total = stream.n_prompt + max_tokens;
    struct End {
      Decoder& decoder;
      Stream& stream;
      ~End() { decoder.end(stream); }
    } end{decoder_, stream};
    decoder_.begin(stream, [&between] {
      between();
      return false;  // not cancelled
    });

    DecodedText text;
    const std::int64_t passes_before = n_drafter_passes();
    std::vector<Stream*> streams = {&stream};
    const CommitFunction on_commit = [](Stream& at, const Committed& committed) {
      if (std::isnan(at.views.logits(committed.logits_node).at(committed.id))) {
        throw Error(kOperation, "logits", "numbers", "NaN (the model's weights may be broken)");
      }
      return false;  // the text goes on to max_total
    };
    RoundHooks hooks;
    hooks.before = [&between](std::span<Stream* const>) { between(); };
    hooks.after = [&text](std::span<Stream* const>, const RoundTimes& times) {
      text.times.draft += times.draft;
      text.times.forward += times.forward;
      text.times.verify += times.verify;
    };
    const auto begun = Clock::now();
    decoder_.run_to_end(streams, on_commit, hooks);
    text.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    text.ids.assign(stream.tokens.begin() + stream.n_prompt, stream.tokens.end());
    text.counts = stream.counts;
    text.drafter_passes = n_drafter_passes() - passes_before;
    return text;
  }

 private:
  std::int64_t n_drafter_passes() const { return drafter_ != nullptr ? drafter_->n_passes() : 0; }

  const Model* model_;
  Drafter* drafter_;
  Decoder decoder_;
  SequenceId next_id_ = 0;
};

// The results of one way, one value per round of the measurement, in seconds. The last three are
// means over the passes of a text.
struct WaySamples {
  std::vector<double> seconds;
  std::vector<double> target_pass;
  std::vector<double> drafter_pass;
  std::vector<double> verify;

  void add(const DecodedText& text) {
    const auto per = [](double seconds, std::int64_t n) {
      return n > 0 ? seconds / static_cast<double>(n) : 0;
    };
    seconds.push_back(text.seconds);
    target_pass.push_back(per(text.times.forward, text.counts.target_passes));
    drafter_pass.push_back(per(text.times.draft, text.drafter_passes));
    verify.push_back(per(text.times.verify, text.counts.target_passes));
  }
};

// Every text of a way has the same counts, so the last one's remain.
void count(const DecodedText& text, SimulatedTree& result) {
  result.target_passes = text.counts.target_passes;
  result.drafter_passes = text.drafter_passes;
  result.drafted = text.counts.drafted;
  result.accepted = text.counts.accepted;
  result.rejected = text.counts.rejected;
  result.emitted = static_cast<std::int64_t>(text.ids.size());
}

}  // namespace

void require_plain_text(std::span<const TokenId> ids, std::span<const TokenId> plain,
                        const std::string& tree) {
  const auto [id, plain_id] = std::mismatch(ids.begin(), ids.end(), plain.begin(), plain.end());
  if (id == ids.end() && plain_id == plain.end()) return;
  const auto show = [](auto at, auto end) {
    return at == end ? std::string("the end") : fmt::format("id {}", *at);
  };
  const std::string how = tree.empty() ? "without drafts" : "drafted by " + tree;
  throw Error(kOperation, fmt::format("token {} {}", id - ids.begin(), how),
              "plain decoding's " + show(plain_id, plain.end()), show(id, ids.end()));
}

void check_simulation(const SpeculationOptions& drafter, const SimulationOptions& options) {
  const auto require = [](bool holds, const char* what, const std::string& expected, auto got) {
    if (!holds) throw UsageError(kOperation, what, expected, fmt::format("{}", got));
  };
  // Written so that NaN is refused.
  require(options.acceptance >= 0 && options.acceptance <= 1, "acceptance",
          "a probability from 0 to 1", options.acceptance);
  require(options.max_tokens >= 2, "max_tokens", "2 or more", options.max_tokens);
  require(options.context >= 0, "context", "0 tokens or more", options.context);
  require(options.rounds >= 1, "rounds", "1 or more", options.rounds);
  require(!options.trees.empty(), "trees", "at least one", "none");
  for (const std::string& tree : options.trees) {
    require(make_tree_shape(tree)->is_chain(), "tree", "a chain", tree);
  }
  const bool drafts = drafter.drafter.substr(0, drafter.drafter.find(':')) != "none";
  require(drafts && read_drafter(drafter.drafter).traits.has_draft_prob, "drafter",
          "one that runs a model (model:PATH)", drafter.drafter);
}

Simulation simulate_acceptance(const Model& target, const SpeculationOptions& drafter,
                               const SimulationOptions& options) {
  check_simulation(drafter, options);
  const std::vector<TokenId> prompt =
      arbitrary_tokens(options.context + 1, target.summary().vocabulary_size);
  const int room = target.summary().context_length - options.max_tokens - 1;
  if (options.context > room) {
    throw UsageError(kOperation, "context",
                     fmt::format("room for {} more tokens in the model's context of {}",
                                 options.max_tokens, target.summary().context_length),
                     fmt::format("{} tokens before them", options.context));
  }

  const std::size_t n_ways = 1 + options.trees.size();
  // One warm-up text for every way, then the rounds.
  const double n_texts = static_cast<double>(n_ways) * (options.rounds + 1);
  double n_done = 0;
  std::string step;
  const auto between = [&] {
    if (options.progress) options.progress(step, n_done / n_texts);
  };
  const auto begin_step = [&](std::string name) {
    step = std::move(name);
    between();
  };

  begin_step("loading drafter");
  const Speculation plain = make_speculation(target, {});
  const Speculation drafted =
      make_speculation(target, {.drafter = drafter.drafter,
                                .tree = options.trees.front(),
                                .drafter_options = drafter.drafter_options});
  Way plain_way(target, nullptr, plain, plain.shape);
  begin_step("warming up, plain");
  const std::vector<TokenId> plain_ids = plain_way.decode(prompt, options.max_tokens, between).ids;
  ++n_done;

  std::vector<TokenId> text = prompt;
  text.insert(text.end(), plain_ids.begin(), plain_ids.end());
  SimulatedDrafter simulated(*drafted.drafter, std::move(text), target.summary().vocabulary_size,
                             options.acceptance, options.seed);
  std::vector<Way> ways;
  for (const std::string& tree : options.trees) {
    ways.emplace_back(target, &simulated, drafted, make_tree_shape(tree));
    begin_step("warming up, " + tree);
    ways.back().decode(prompt, std::min(options.max_tokens, kWarmUp_tokens), between);
    ++n_done;
  }

  Simulation result;
  result.trees.resize(options.trees.size());
  WaySamples plain_samples;
  std::vector<WaySamples> samples(ways.size());
  for (int round = 1; round <= options.rounds; ++round) {
    const std::string prefix = fmt::format("round {} of {}, ", round, options.rounds);
    begin_step(prefix + "plain");
    const DecodedText again = plain_way.decode(prompt, options.max_tokens, between);
    require_plain_text(again.ids, plain_ids, "");
    plain_samples.add(again);
    ++n_done;
    for (std::size_t index = 0; index < ways.size(); ++index) {
      const std::string& tree = options.trees[index];
      begin_step(prefix + tree);
      const DecodedText decoded = ways[index].decode(prompt, options.max_tokens, between);
      require_plain_text(decoded.ids, plain_ids, tree);
      samples[index].add(decoded);
      count(decoded, result.trees[index]);
      ++n_done;
    }
  }

  result.plain_seconds = spread_of(plain_samples.seconds);
  result.plain_tokens_per_second = options.max_tokens / result.plain_seconds.median;
  result.plain_pass_seconds = spread_of(plain_samples.target_pass).median;
  for (std::size_t index = 0; index < ways.size(); ++index) {
    SimulatedTree& tree = result.trees[index];
    tree.tree = options.trees[index];
    tree.seconds = spread_of(samples[index].seconds);
    tree.speedup = result.plain_seconds.median / tree.seconds.median;
    tree.target_pass_seconds = spread_of(samples[index].target_pass).median;
    tree.drafter_pass_seconds = spread_of(samples[index].drafter_pass).median;
    tree.verify_seconds = spread_of(samples[index].verify).median;
    if (tree.speedup > result.trees[result.fastest].speedup) result.fastest = index;
  }
  return result;
}

}  // namespace outrider
