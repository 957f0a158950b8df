// SPDX-License-Identifier: Apache-2.0
// Rates targets without some of their layers as drafters.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "measure/spread.h"
#include "measure/text_beginnings.h"
#include "measure/tuning/profile_passes.h"
#include "measure/tuning/skip_search.h"
#include "model/language_model.h"
#include "model/prefill.h"
#include "model/require_decoder.h"
#include "outrider/error.h"
#include "outrider/tune.h"
#include "sampling/distribution.h"
#include "sampling/penalised_row.h"
#include "sampling/transform.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "search layers";

// The longest planned chain: even if 19 of 20 tokens are accepted, less than half of the drafts get
// that far (0.95^16 = 0.44), and each token costs a large part of a target pass.
constexpr int kLongestChain = 16;

// The progress bar's value after continuing texts and timing passes: a guess at their share of the
// time.
constexpr double kShareOfTexts = 0.15;
constexpr double kShareOfPasses = 0.1;

void check(const Model& model, const LayerSearchOptions& options) {
  const auto require = [](const char* what, int value, int least) {
    if (value >= least) return;
    throw UsageError(kOperation, what, fmt::format("{} or more", least), fmt::format("{}", value));
  };
  require_decoder(model.language_model().config(), kOperation);
  check_texts(model, options.texts, 1, kLongestChain + 1, kOperation);
  require("trials", options.trials, 1);
  require("rounds", options.rounds, 1);
  if (model.summary().n_layers < 2) {
    throw UsageError(kOperation, "model", "at least two layers", "one");
  }
}

// A beginning, the target's continuation, and its probability of each of its tokens.
struct Continued {
  std::vector<TokenId> tokens;
  std::size_t n_prompt = 0;
  std::vector<double> target_prob;  // for tokens[n_prompt + i]
};

// Probabilities of a text's own tokens, from n_prompt on, by the model without some layers.
void probs_of(LanguageModel& model, const Continued& text, const Transform& transform,
              std::span<const int> skip_layers, std::vector<double>& probs) {
  probs.clear();
  const auto sequence = model.open({});
  TokenHistory history;
  history.add_prompt(std::span(text.tokens).first(text.n_prompt));
  ForwardOutput output;
  Distribution dist;
  std::vector<TokenLogit> replaced;
  std::vector<int> rows;
  std::vector<int> kept;
  // Nothing follows the last token.
  std::span<const TokenId> rest = std::span(text.tokens).first(text.tokens.size() - 1);
  for (std::size_t at = 0; !rest.empty();) {
    const auto step = rest.first(std::min<std::size_t>(rest.size(), kPrefillRows));
    rows.clear();
    kept.clear();
    for (std::size_t row = 0; row < step.size(); ++row) {
      kept.push_back(static_cast<int>(row));
      if (at + row + 1 >= text.n_prompt) rows.push_back(static_cast<int>(row));
    }
    const TokenBlock block{.sequence = sequence.get(), .tokens = step, .parents = {}};
    model.forward({&block, 1},
                  {.logits = {.kind = RowSet::Kind::listed, .rows = rows},
                   .feature_layers = {},
                   .skip_layers = skip_layers},
                  output);
    sequence->keep(kept);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const TokenId next = text.tokens[at + static_cast<std::size_t>(rows[row]) + 1];
      const PenalisedRow logits(transform, output.logits.row(static_cast<int>(row)), history, {},
                                replaced);
      transform.distribution(logits.row(), dist);
      probs.push_back(dist.prob(next));
      history.add_generated(next);
    }
    at += step.size();
    rest = rest.subspan(step.size());
  }
}

std::vector<Continued> continue_texts(const std::shared_ptr<const Model>& model,
                                      const LayerSearchOptions& options,
                                      const Transform& transform) {
  const auto beginnings = text_beginnings(model->tokenizer(), options.texts, kOperation);
  Generator plain(model);
  std::vector<Continued> texts;
  for (std::size_t index = 0; index < beginnings.size(); ++index) {
    if (options.progress) {
      options.progress("continuing texts", kShareOfTexts * static_cast<double>(index) /
                                               static_cast<double>(beginnings.size()));
    }
    const GenerateRequest request{.prompt = beginnings[index],
                                  .options = {.max_tokens = options.texts.max_tokens,
                                              .sampling = options.texts.sampling,
                                              .seed = options.seed + index,
                                              .ignore_eos = true}};
    const std::vector<TokenId> ids = plain.generate({&request, 1}).front().ids;
    Continued& text = texts.emplace_back();
    text.tokens = beginnings[index];
    text.n_prompt = text.tokens.size();
    text.tokens.insert(text.tokens.end(), ids.begin(), ids.end());
    probs_of(model->language_model(), text, transform, {}, text.target_prob);
  }
  return texts;
}

double acceptance_without(LanguageModel& model, const std::vector<Continued>& texts,
                          const Transform& transform, std::span<const int> skip_layers) {
  double sum = 0;
  double n_tokens = 0;
  std::vector<double> probs;
  for (const Continued& text : texts) {
    probs_of(model, text, transform, skip_layers, probs);
    for (std::size_t i = 0; i < probs.size(); ++i) {
      // The token was sampled, so the target's probability is positive except for rounding.
      const double target_prob = text.target_prob[i];
      sum += target_prob > 0 ? std::min(1.0, probs[i] / target_prob) : 0.0;
    }
    n_tokens += static_cast<double>(probs.size());
  }
  return sum / n_tokens;
}

// Seconds of a pass of one row after a short text, with layers skipped.
double one_row_seconds(LanguageModel& model, std::span<const int> skip_layers, int n_passes) {
  using Clock = std::chrono::steady_clock;
  const auto sequence = model.open({});
  ForwardOutput output;
  const TokenId token = 0;
  const TokenBlock block{.sequence = sequence.get(), .tokens = {&token, 1}, .parents = {}};
  const ForwardRequest request{.logits = {}, .feature_layers = {}, .skip_layers = skip_layers};
  model.forward({&block, 1}, request, output);  // allocates buffers and wakes threads
  sequence->keep({});
  const auto begin = Clock::now();
  for (int pass = 0; pass < n_passes; ++pass) {
    model.forward({&block, 1}, request, output);
    sequence->keep({});
  }
  return std::chrono::duration<double>(Clock::now() - begin).count() / n_passes;
}

// The relative saving of skipping one layer in a pass of one row. Layers have nearly equal shapes,
// so only their number counts.
double share_of_a_layer(LanguageModel& model, int rounds) {
  // Enough passes for the clock's resolution, few enough for the slowest models.
  constexpr int kPasses = 4;
  std::vector<int> all(static_cast<std::size_t>(model.config().n_layers) - 1);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i) + 1;
  std::vector<double> shares;
  for (int round = 0; round < rounds; ++round) {
    const double whole = one_row_seconds(model, {}, kPasses);
    const double first_alone = one_row_seconds(model, all, kPasses);
    shares.push_back((1 - first_alone / whole) / static_cast<double>(all.size()));
  }
  return std::clamp(spread_of(shares).median, 0.0, 1 / static_cast<double>(all.size() + 1));
}

}  // namespace

std::string SkippedLayers::drafter() const {
  return fmt::format("layerskip:skip={}", fmt::join(layers, "+"));
}

std::vector<SkippedLayers> search_layers(const std::shared_ptr<const Model>& model,
                                         const LayerSearchOptions& options) {
  check(*model, options);
  LanguageModel& target = model->language_model();
  const Transform transform(options.texts.sampling, model->summary().vocabulary_size);
  const std::vector<Continued> texts = continue_texts(model, options, transform);

  // For a given cost and acceptance, chains are planned as trees of one rank.
  TreeProfile profile;
  profile.passes =
      profile_passes(*model, options.texts, {1, 2, 4, 8, kLongestChain + 1}, options.rounds,
                     [&options](std::string_view what, double share) {
                       if (options.progress)
                         options.progress(what, kShareOfTexts + kShareOfPasses * share);
                     });
  const double layer_share = share_of_a_layer(target, options.rounds);

  std::vector<SkippedLayers> found;
  const double n_subsets = std::exp2(target.config().n_layers) - 2;
  const double n_trials = std::min(static_cast<double>(options.trials), n_subsets);
  search_subsets(
      target.config().n_layers, options.trials, options.seed, [&](const std::vector<int>& layers) {
        if (options.progress) {
          constexpr double kBefore = kShareOfTexts + kShareOfPasses;
          options.progress("trying layers",
                           kBefore + (1 - kBefore) * static_cast<double>(found.size()) / n_trials);
        }
        // A model that reads keys which it has not written drafts nothing: rated below any
        // speed-up.
        if (unreadable_keys(target.config(), layers)) return 0.0;
        SkippedLayers set;
        set.layers = layers;
        set.acceptance = acceptance_without(target, texts, transform, layers);
        set.cost = 1 - layer_share * static_cast<double>(layers.size());
        profile.accept_by_rank = {set.acceptance};
        profile.level_seconds = set.cost * profile.passes.front().seconds;
        const PlannedDraft plan = plan_tree(profile, kLongestChain);
        set.length = plan.n_nodes;
        set.speedup = plan.speedup();
        found.push_back(set);
        // If no draft pays, the speed-up of the shortest one, at most 1.
        const double two_rows = profile.passes[1].seconds / profile.passes[0].seconds;
        return plan.n_nodes > 0 ? set.speedup : (1 + set.acceptance) / (set.cost + two_rows);
      });
  std::stable_sort(found.begin(), found.end(), [](const SkippedLayers& a, const SkippedLayers& b) {
    return std::pair(a.speedup, a.acceptance) > std::pair(b.speedup, b.acceptance);
  });
  return found;
}

}  // namespace outrider
