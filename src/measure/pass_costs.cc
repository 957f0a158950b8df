// SPDX-License-Identifier: Apache-2.0
#include "measure/pass_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "measure/arbitrary_tokens.h"
#include "measure/spread.h"
#include "measure/stream_read.h"
#include "model/any_encoder_tokens.h"
#include "model/language_model.h"
#include "model/prefill.h"
#include "outrider/error.h"
#include "speculate/tree_shapes/tree_shape.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

static_assert(kMaxPassRows == kMaxDraftNodes + 1, "the widest draft and its root");

constexpr const char* kOperation = "measure passes";

// A sample repeats a pass until this time has passed. Waking a team and reading the clock, some ten
// microseconds, are then a thousandth of it, however small the model.
constexpr double kShortestSample_seconds = 0.05;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// Passes of one width after a fixed context.
class TreePass {
 public:
  TreePass(LanguageModel& model, Sequence& sequence, int n_rows, PassNodes nodes)
      : model_(&model),
        sequence_(&sequence),
        tokens_(arbitrary_tokens(n_rows, model.config().vocabulary_size)),
        parents_(tokens_.size()) {
    for (std::size_t row = 0; row < parents_.size(); ++row) {
      const bool is_chain = nodes == PassNodes::chain || row == 0;
      parents_[row] = is_chain ? static_cast<int>(row) - 1 : 0;
    }
  }

  double seconds() {
    const TokenBlock block{.sequence = sequence_, .tokens = tokens_, .parents = parents_};
    const auto begin = Clock::now();
    model_->forward({&block, 1}, {.logits = {.kind = RowSet::Kind::all, .rows = {}}}, output_);
    const auto end = Clock::now();
    sequence_->keep({});
    return seconds_between(begin, end);
  }

  // In the last pass; constant for a width, whose tokens and context are fixed.
  double experts() const { return output_.experts_a_layer; }

  double sample() {
    double total = 0;
    int n_passes = 0;
    for (; total < kShortestSample_seconds; ++n_passes) total += seconds();
    return total / n_passes;
  }

 private:
  LanguageModel* model_;
  Sequence* sequence_;
  std::vector<TokenId> tokens_;
  std::vector<int> parents_;
  ForwardOutput output_;  // one per width, so that no timed pass allocates
};

// Seconds from an empty sequence to the logits of the prompt's last token.
double prefill_seconds(LanguageModel& model, std::span<const TokenId> tokens,
                       ForwardOutput& output) {
  const std::vector<TokenId> encoder_tokens = any_encoder_tokens(model.config());
  const std::unique_ptr<Sequence> sequence = model.open({.encoder_tokens = encoder_tokens});
  // As in generation, except for the last token, which would be the first round's root.
  const std::size_t n_last = (tokens.size() - 1) % kPrefillRows + 1;
  model.encode(*sequence);  // this prompt goes to the decoder
  const auto begin = Clock::now();
  prefill(model, *sequence, tokens.first(tokens.size() - n_last), output);
  const TokenBlock block{.sequence = sequence.get(), .tokens = tokens.last(n_last), .parents = {}};
  model.forward({&block, 1}, {.logits = {.kind = RowSet::Kind::last_of_each_block, .rows = {}}},
                output);
  return seconds_between(begin, Clock::now());
}

void require_room(const char* what, int wanted, int room) {
  if (wanted <= room) return;
  throw UsageError(kOperation, what, fmt::format("at most {} tokens in the model's context", room),
                   fmt::format("{}", wanted));
}

std::vector<int> with_one_row(std::vector<int> rows) {
  if (rows.front() != 1) rows.insert(rows.begin(), 1);
  return rows;
}

}  // namespace

PassCosts summarise(const PassSamples& samples, std::int64_t weight_bytes) {
  PassCosts costs;
  for (std::size_t index = 0; index < samples.rows.size(); ++index) {
    PassCost& pass = costs.passes.emplace_back();
    pass.rows = samples.rows[index];
    pass.seconds = spread_of(samples.seconds[index]);
    if (index < samples.experts.size()) pass.experts = samples.experts[index];
    pass.ratio = pass.seconds.median / costs.passes.front().seconds.median;
  }
  if (!samples.prefill_seconds.empty()) {
    costs.prefill = {.tokens = samples.prefill_tokens,
                     .seconds = spread_of(samples.prefill_seconds)};
  }
  costs.bandwidth_bytes_per_second = spread_of(samples.bandwidth);
  costs.one_stream_bytes_per_second = spread_of(samples.one_stream);
  costs.bandwidth_share =
      static_cast<double>(weight_bytes) /
      (costs.passes.front().seconds.median * costs.bandwidth_bytes_per_second.median);
  return costs;
}

void check_passes(const PassOptions& options) {
  const auto fail = [](const char* what, const std::string& expected, std::int64_t got) {
    throw UsageError(kOperation, what, expected, fmt::format("{}", got));
  };
  if (options.rows.empty()) throw UsageError(kOperation, "rows", "at least one number", "none");
  int before = 0;
  for (const int n_rows : options.rows) {
    if (n_rows < 1 || n_rows > kMaxPassRows) {
      fail("rows", fmt::format("numbers from 1 to {}", kMaxPassRows), n_rows);
    }
    if (n_rows <= before) {
      fail("rows", fmt::format("ascending numbers, more than {} next", before), n_rows);
    }
    before = n_rows;
  }
  if (options.context < 0) fail("context", "0 tokens or more", options.context);
  if (options.prefill < 0) fail("prefill", "0 tokens or more", options.prefill);
  if (options.rounds < 1) fail("rounds", "1 or more", options.rounds);
  if (options.read_bytes < 1) fail("read_bytes", "1 or more", options.read_bytes);
}

PassCosts measure_passes(const Model& model, const PassOptions& options) {
  check_passes(options);
  const int room = model.summary().context_length;
  PassSamples samples{.rows = with_one_row(options.rows),
                      .seconds = {},
                      .experts = {},
                      .bandwidth = {},
                      .one_stream = {},
                      .prefill_tokens = options.prefill,
                      .prefill_seconds = {}};
  require_room("rows", samples.rows.back(), room);
  require_room("context", options.context, room - samples.rows.back());
  require_room("prefill", options.prefill, room);
  samples.seconds.resize(samples.rows.size());
  samples.experts.resize(samples.rows.size());

  LanguageModel& language_model = model.language_model();
  const std::size_t n_prefill = options.prefill > 0 ? 1 : 0;
  // Steps: the memory, one warm-up pass of every kind, then the rounds.
  const std::size_t n_steps =
      1 + (samples.rows.size() + n_prefill) * (static_cast<std::size_t>(options.rounds) + 1);
  std::size_t n_done = 0;
  const auto report = [&](const std::string& step) {
    const double share = static_cast<double>(n_done++) / static_cast<double>(n_steps);
    if (options.progress) options.progress(step, share);
  };
  const auto name_of = [](int n_rows) {
    return fmt::format("{} row{}", n_rows, n_rows == 1 ? "" : "s");
  };

  const int vocabulary_size = model.summary().vocabulary_size;
  const std::vector<TokenId> encoder_tokens = any_encoder_tokens(language_model.config());
  const std::unique_ptr<Sequence> sequence =
      language_model.open({.encoder_tokens = encoder_tokens});
  ForwardOutput output;
  for (int n_kept = 0; n_kept < options.context; n_kept = sequence->n_kept()) {
    if (options.progress) options.progress(fmt::format("context, {} tokens", n_kept), 0);
    prefill(language_model, *sequence,
            arbitrary_tokens(std::min(options.context - n_kept, kPrefillRows), vocabulary_size),
            output);
  }

  report("memory");
  const StreamRead read(static_cast<std::size_t>(options.read_bytes), model.summary().threads);
  std::vector<TreePass> passes;
  for (const int n_rows : samples.rows) {
    passes.emplace_back(language_model, *sequence, n_rows, options.nodes);
    report("warming up, " + name_of(n_rows));
    passes.back().seconds();
  }
  const std::vector<TokenId> prompt = arbitrary_tokens(options.prefill, vocabulary_size);
  if (n_prefill > 0) {
    report("warming up, prefill");
    prefill_seconds(language_model, prompt, output);
  }

  for (int round = 1; round <= options.rounds; ++round) {
    const std::string prefix = fmt::format("round {} of {}, ", round, options.rounds);
    for (std::size_t index = 0; index < passes.size(); ++index) {
      report(prefix + name_of(samples.rows[index]));
      // Before every width: a read is short, and the bandwidth should be sampled as often as the
      // passes that it bounds. It also leaves the same cache contents for every width.
      samples.one_stream.push_back(read.bytes_per_second(StreamRead::Streams::one));
      samples.bandwidth.push_back(read.bytes_per_second());
      samples.seconds[index].push_back(passes[index].sample());
      samples.experts[index] = passes[index].experts();
    }
    if (n_prefill > 0) {
      report(prefix + "prefill");
      samples.prefill_seconds.push_back(prefill_seconds(language_model, prompt, output));
    }
  }
  return summarise(samples, model.summary().weight_bytes - model.summary().idle_bytes);
}

}  // namespace outrider
