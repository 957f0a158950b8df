// SPDX-License-Identifier: Apache-2.0
// Computes figures from rounds: sums over prompts, ratios of the sums, and intervals by resampling
// prompts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "measure/comparison/method_bounds.h"
#include "outrider/method_report.h"
#include "sampling/bootstrap.h"

namespace outrider {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Draft places with separate figures: 32, the deepest level that planned drafts distinguish
// (engine/drafting/step_plan.h).
constexpr std::size_t kMaxPlaces = 32;

// The quantities that are summed over prompts.
enum Column : std::size_t {
  kPlainTime,   // seconds of plain decoding for its tokens
  kMethodTime,  // seconds of the method for as many
  kPlainRequest,
  kRequest,
  kPlainFirst,
  kFirst,
  kEmitted,
  kPasses,
  kDraft,
  kTarget,
  kVerify,
  kDecode,
  kLevels,       // drafted
  kPlainDecode,  // summed over repeats
  kPlainTokens,  // summed over repeats
  kBoundTokens,
  kBoundLevels,
  kOracleCost,
  kDraftedCost,
  kFirstPlace,  // two per place: reached, accepted
};

// The scores computed from sums, in the order of score().
enum Score : std::size_t {
  kSpeedup,
  kRequestSpeedup,
  kFirstTokenRatio,
  kTau,
  kDraftShare,
  kTargetShare,
  kVerifyShare,
  kRestShare,
  kLevelCost,
  kOracle,
  kPerfect,
  kFree,
  kOracleShare,
  kFirstAcceptance,
};

// One method's samples of one prompt at one temperature, one per repeat, with plain decoding's.
struct PromptSamples {
  std::vector<const MethodSample*> samples;
  std::vector<const MethodSample*> plain;
};

template <typename Value>
double median_of(std::span<const MethodSample* const> samples, Value value) {
  std::vector<double> values;
  values.reserve(samples.size());
  for (const MethodSample* sample : samples) values.push_back(value(*sample));
  return median(std::move(values));
}

double seconds_per_token(const MethodSample& sample) {
  return sample.decode_seconds / static_cast<double>(sample.emitted);
}

// One prompt's counts, in the columns that score() needs.
std::vector<double> row_of(const PromptSamples& prompt, std::size_t n_places,
                           const PassTimes* costs) {
  std::vector<double> row(kFirstPlace + 2 * n_places, 0.0);
  const double n_tokens = median_of(
      prompt.plain, [](const MethodSample& sample) { return static_cast<double>(sample.emitted); });
  const auto request = [](const MethodSample& sample) { return sample.request_seconds; };
  const auto first = [](const MethodSample& sample) { return sample.first_token_seconds; };
  row[kPlainTime] = n_tokens * median_of(prompt.plain, seconds_per_token);
  row[kMethodTime] = n_tokens * median_of(prompt.samples, seconds_per_token);
  row[kPlainRequest] = median_of(prompt.plain, request);
  row[kRequest] = median_of(prompt.samples, request);
  row[kPlainFirst] = median_of(prompt.plain, first);
  row[kFirst] = median_of(prompt.samples, first);
  for (const MethodSample* plain : prompt.plain) {
    row[kPlainDecode] += plain->decode_seconds;
    row[kPlainTokens] += static_cast<double>(plain->emitted);
  }
  BoundSums bounds;
  for (const MethodSample* sample : prompt.samples) {
    row[kEmitted] += static_cast<double>(sample->emitted);
    row[kPasses] += static_cast<double>(sample->target_passes);
    row[kDraft] += sample->draft_seconds;
    row[kTarget] += sample->target_seconds;
    row[kVerify] += sample->verify_seconds;
    row[kDecode] += sample->decode_seconds;
    for (const DraftOutcome& outcome : sample->outcomes) {
      const auto n = static_cast<double>(outcome.n);
      row[kLevels] += n * outcome.levels;
      if (costs != nullptr) bounds.add(outcome, *costs);
      for (std::size_t place = 0; place < n_places; ++place) {
        const auto depth = static_cast<int>(place);
        if (depth >= outcome.levels || depth > outcome.accepted) break;
        row[kFirstPlace + 2 * place] += n;
        if (depth < outcome.accepted) row[kFirstPlace + 2 * place + 1] += n;
      }
    }
  }
  row[kBoundTokens] = bounds.tokens;
  row[kBoundLevels] = bounds.levels;
  row[kOracleCost] = bounds.oracle_cost;
  row[kDraftedCost] = bounds.drafted_cost;
  return row;
}

// NaN if nothing was drafted.
double level_cost(std::span<const double> sums) {
  if (sums[kLevels] == 0) return kUnknown;
  return sums[kDraft] / sums[kLevels] / (sums[kPlainDecode] / sums[kPlainTokens]);
}

std::vector<double> score(std::span<const double> sums, const PassTimes* costs) {
  const std::size_t n_places = (sums.size() - kFirstPlace) / 2;
  std::vector<double> scores(kFirstAcceptance + n_places, kUnknown);
  scores[kSpeedup] = sums[kPlainTime] / sums[kMethodTime];
  scores[kRequestSpeedup] = sums[kPlainRequest] / sums[kRequest];
  scores[kFirstTokenRatio] = sums[kFirst] / sums[kPlainFirst];
  scores[kTau] = sums[kEmitted] / sums[kPasses];
  scores[kDraftShare] = sums[kDraft] / sums[kDecode];
  scores[kTargetShare] = sums[kTarget] / sums[kDecode];
  scores[kVerifyShare] = sums[kVerify] / sums[kDecode];
  scores[kRestShare] = 1 - scores[kDraftShare] - scores[kTargetShare] - scores[kVerifyShare];
  if (costs != nullptr) {
    const BoundSums bounds{.tokens = sums[kBoundTokens],
                           .levels = sums[kBoundLevels],
                           .oracle_cost = sums[kOracleCost],
                           .drafted_cost = sums[kDraftedCost]};
    const double level = level_cost(sums);
    scores[kLevelCost] = level;
    scores[kOracle] = bounds.oracle(std::isnan(level) ? 0 : level);
    if (!std::isnan(level)) scores[kPerfect] = perfect_draft(*costs, level).speedup;
    scores[kFree] = bounds.free();
    scores[kOracleShare] = scores[kSpeedup] / scores[kOracle];
  }
  for (std::size_t place = 0; place < n_places; ++place) {
    const double reached = sums[kFirstPlace + 2 * place];
    if (reached > 0) {
      scores[kFirstAcceptance + place] = sums[kFirstPlace + 2 * place + 1] / reached;
    }
  }
  return scores;
}

bool is_head(const ComparedMethod& method) {
  const std::string_view drafter = method.speculation.drafter;
  const std::string_view kind = drafter.substr(0, drafter.find(':'));
  return kind == "eagle" || kind == "medusa" || kind == "mtp";
}

// The counts among the figures, which have no interval.
void count(std::span<const PromptSamples> prompts, MethodFigures& figures) {
  bool are_chains = true;
  for (const PromptSamples& prompt : prompts) {
    bool is_same = true;
    for (const MethodSample* sample : prompt.samples) {
      is_same = is_same && sample->first_difference < 0;
      for (const DraftOutcome& outcome : sample->outcomes) {
        are_chains = are_chains && outcome.nodes == outcome.levels;
        const auto length = static_cast<std::size_t>(outcome.accepted);
        if (figures.accepted_lengths.size() <= length) figures.accepted_lengths.resize(length + 1);
        figures.accepted_lengths[length] += outcome.n;
      }
    }
    if (is_same) ++figures.n_same;
  }
  figures.has_alphas = figures.has_alphas && are_chains;
}

std::size_t n_places_of(std::span<const PromptSamples> prompts) {
  int deepest = 0;
  for (const PromptSamples& prompt : prompts) {
    for (const MethodSample* sample : prompt.samples) {
      for (const DraftOutcome& outcome : sample->outcomes) {
        deepest = std::max(deepest, outcome.levels);
      }
    }
  }
  return std::min(static_cast<std::size_t>(deepest), kMaxPlaces);
}

// `figures` already has the method, temperature and category; `prompts` is not empty.
void measure(std::span<const PromptSamples> prompts, const PassTimes* costs, bool drafts,
             MethodFigures& figures) {
  count(prompts, figures);
  figures.n_prompts = static_cast<int>(prompts.size());
  const std::size_t n_places = n_places_of(prompts);
  const std::size_t n_counts = kFirstPlace + 2 * n_places;
  std::vector<double> counts;
  counts.reserve(prompts.size() * n_counts);
  std::vector<double> sums(n_counts, 0.0);
  std::vector<double> speeds;
  speeds.reserve(prompts.size());
  for (const PromptSamples& prompt : prompts) {
    const std::vector<double> row = row_of(prompt, n_places, costs);
    counts.insert(counts.end(), row.begin(), row.end());
    for (std::size_t column = 0; column < n_counts; ++column) sums[column] += row[column];
    speeds.push_back(1 / median_of(prompt.samples, seconds_per_token));
  }
  const std::vector<double> values = score(sums, costs);
  const bool has_spread = prompts.size() > 1;
  std::vector<Interval> intervals(values.size(), Interval{.low = kUnknown, .high = kUnknown});
  if (has_spread) {
    intervals = bootstrap_intervals(counts, n_counts, [&](std::span<const double> resampled) {
      return score(resampled, costs);
    });
  }
  const auto estimate = [&](std::size_t index) {
    return Estimate{
        .value = values[index], .low = intervals[index].low, .high = intervals[index].high};
  };
  figures.speedup = estimate(kSpeedup);
  const bool same_texts = figures.n_same == figures.n_prompts;
  figures.request_speedup =
      same_texts ? estimate(kRequestSpeedup) : Estimate{kUnknown, kUnknown, kUnknown};
  figures.first_token_ratio = estimate(kFirstTokenRatio);
  const Interval speed = has_spread ? bootstrap_median(speeds) : Interval{kUnknown, kUnknown};
  figures.tokens_per_second = {.value = median(speeds), .low = speed.low, .high = speed.high};
  figures.tau = estimate(kTau);
  figures.draft_share = estimate(kDraftShare);
  figures.target_share = estimate(kTargetShare);
  figures.verify_share = estimate(kVerifyShare);
  figures.rest_share = estimate(kRestShare);
  figures.places.reserve(n_places);
  for (std::size_t place = 0; place < n_places; ++place) {
    figures.places.push_back({.n_reached = std::llround(sums[kFirstPlace + 2 * place]),
                              .n_stood = std::llround(sums[kFirstPlace + 2 * place + 1]),
                              .acceptance = estimate(kFirstAcceptance + place)});
  }
  if (costs == nullptr || !drafts) return;
  const double level = values[kLevelCost];
  figures.bounds =
      MethodBounds{.level_cost = estimate(kLevelCost),
                   .oracle = estimate(kOracle),
                   .perfect = estimate(kPerfect),
                   .perfect_length = std::isnan(level) ? -1 : perfect_draft(*costs, level).length,
                   .free = estimate(kFree),
                   .oracle_share = estimate(kOracleShare)};
}

// The usable rounds of one temperature, by prompt.
std::map<std::size_t, std::vector<const ComparedRound*>> rounds_by_prompt(
    const MethodComparison& comparison, double temperature) {
  std::map<std::size_t, std::vector<const ComparedRound*>> by_prompt;
  for (const ComparedRound& round : comparison.rounds) {
    if (round.temperature != temperature || round.samples.empty()) continue;
    const bool all_wrote =
        std::all_of(round.samples.begin(), round.samples.end(),
                    [](const MethodSample& sample) { return sample.emitted > 0; });
    if (all_wrote) by_prompt[round.prompt].push_back(&round);
  }
  return by_prompt;
}

}  // namespace

bool MethodComparison::is_complete() const {
  return rounds.size() == options.prompts.size() * options.temperatures.size() *
                              static_cast<std::size_t>(options.repeats);
}

std::vector<int> bound_rows() { return {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}; }

std::vector<MethodFigures> method_figures(const MethodComparison& comparison) {
  std::optional<PassTimes> costs;
  if (comparison.passes) costs = relative_costs(*comparison.passes);
  const CompareOptions& options = comparison.options;
  std::vector<MethodFigures> all;
  for (const double temperature : options.temperatures) {
    const auto by_prompt = rounds_by_prompt(comparison, temperature);
    if (by_prompt.empty()) continue;
    for (std::size_t method = 0; method < options.methods.size(); ++method) {
      const ComparedMethod& compared = options.methods[method];
      const auto figures_of = [&](std::span<const PromptSamples> prompts, std::string category) {
        MethodFigures figures;
        figures.method = method;
        figures.temperature = temperature;
        figures.category = std::move(category);
        figures.has_alphas = is_head(compared);
        figures.promises_same_text = promises_same_text(compared, temperature);
        measure(prompts, costs ? &*costs : nullptr, compared.speculation.drafter != "none",
                figures);
        return figures;
      };
      std::map<std::string, std::vector<PromptSamples>> by_category;
      std::vector<PromptSamples> every;
      for (const auto& [prompt, rounds] : by_prompt) {
        PromptSamples samples;
        samples.samples.reserve(rounds.size());
        samples.plain.reserve(rounds.size());
        for (const ComparedRound* round : rounds) {
          samples.samples.push_back(&round->samples[method]);
          samples.plain.push_back(&round->samples.front());
        }
        by_category[options.prompts[prompt].category].push_back(samples);
        every.push_back(std::move(samples));
      }
      std::vector<MethodFigures> categories;
      categories.reserve(by_category.size() + 1);
      for (const auto& [category, prompts] : by_category) {
        categories.push_back(figures_of(prompts, category));
      }
      std::stable_sort(categories.begin(), categories.end(),
                       [](const MethodFigures& a, const MethodFigures& b) {
                         return a.speedup.value < b.speedup.value;
                       });
      categories.push_back(figures_of(every, {}));
      std::move(categories.begin(), categories.end(), std::back_inserter(all));
    }
  }
  return all;
}

std::vector<std::string> comparison_problems(const MethodComparison& comparison) {
  std::vector<std::string> problems;
  const CompareOptions& options = comparison.options;
  const auto add = [&](std::size_t index, const std::string& problem) {
    const ComparedPrompt& prompt = options.prompts[index];
    std::string line = fmt::format("{} {}: {}", prompt.set, prompt.id, problem);
    if (std::find(problems.begin(), problems.end(), line) == problems.end()) {
      problems.push_back(std::move(line));
    }
  };
  for (const ComparedRound& round : comparison.rounds) {
    if (!round.problem.empty()) add(round.prompt, round.problem);
    for (std::size_t method = 0; method < round.samples.size(); ++method) {
      const std::int64_t token = round.samples[method].first_difference;
      if (token < 0 || !promises_same_text(options.methods[method], round.temperature)) continue;
      add(round.prompt, fmt::format("{} differs from plain decoding at token {}, temperature {}",
                                    options.methods[method].name, token, round.temperature));
    }
  }
  return problems;
}

}  // namespace outrider
