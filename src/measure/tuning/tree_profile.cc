// SPDX-License-Identifier: Apache-2.0
// Measures the data from which draft trees are planned.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "measure/spread.h"
#include "measure/text_beginnings.h"
#include "measure/tuning/profile_passes.h"
#include "outrider/error.h"
#include "outrider/tune.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/tree_shapes/tree_shape.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "measure tree profile";

// The levels of drafts whose cost is compared with that of one-level drafts.
constexpr int kDeepLevels = 4;

// The target passes' part of the progress bar: a guess at their share of the time.
constexpr double kShareOfPasses = 0.2;

void check(const Model& model, const SpeculationOptions& speculation,
           const TreeProfileOptions& options) {
  const auto require = [](const char* what, int value, int least, int most) {
    if (value >= least && value <= most) return;
    throw UsageError(kOperation, what, fmt::format("{} to {}", least, most),
                     fmt::format("{}", value));
  };
  constexpr int kMany = 1'000'000'000;
  // A round with drafts of several levels must fit.
  constexpr int kMinTokens = 8;
  // The nodes per level of drafts with several levels.
  require("ranks", options.ranks, 1, kMaxDraftNodes / kDeepLevels);
  require("nodes", options.max_nodes, 1, kMaxDraftNodes);
  require("rounds", options.rounds, 1, kMany);
  check_texts(model, options.texts, kMinTokens, options.max_nodes + 1, kOperation);
  const bool proposes =
      speculation.drafter != "none" && read_drafter(speculation.drafter).traits.has_draft_prob;
  if (!proposes) {
    throw UsageError(kOperation, speculation.drafter,
                     "a drafter whose children are ranked by a distribution, such as model:PATH",
                     "one without");
  }
}

// Continues texts with drafts of one shape.
class Continuation {
 public:
  Continuation(std::shared_ptr<const Model> model, SpeculationOptions speculation,
               const std::string& tree, const TreeProfileOptions& options)
      : generator_(std::move(model), with(std::move(speculation), tree)),
        options_(&options),
        accepted_(static_cast<std::size_t>(options.ranks), 0) {}

  void go_on(const std::vector<TokenId>& beginning, std::uint64_t seed) {
    const GenerateRequest request{
        .prompt = beginning,
        .options = {.max_tokens = options_->texts.max_tokens,
                    .sampling = options_->texts.sampling,
                    .seed = seed,
                    .ignore_eos = true,
                    .on_token = [this](const TokenEvent& event) { count(event); }}};
    const GenerateStatistics statistics = generator_.generate({&request, 1}).front().statistics;
    n_drafted_ += statistics.drafted;
    if (statistics.target_passes == 0) return;
    seconds_.push_back(statistics.draft_seconds / static_cast<double>(statistics.target_passes));
  }

  // With one-level drafts: nodes whose children were judged, and how many of these were accepted.
  std::int64_t n_judged() const { return n_judged_; }
  std::int64_t n_drafted() const { return n_drafted_; }
  std::vector<double> shares() const {
    std::vector<double> shares;
    shares.reserve(accepted_.size());
    for (const std::int64_t n : accepted_) {
      shares.push_back(static_cast<double>(n) / static_cast<double>(n_judged_));
    }
    return shares;
  }
  // Drafting time per round.
  double draft_seconds() const { return spread_of(seconds_).median; }

 private:
  static SpeculationOptions with(SpeculationOptions speculation, const std::string& tree) {
    speculation.rule = "exact";
    speculation.verify = "exact";
    speculation.tree = tree;
    return speculation;
  }
  void count(const TokenEvent& event) {
    if (event.origin == TokenOrigin::accepted) {
      ++accepted_[static_cast<std::size_t>(event.rank)];
      ++n_judged_;
    } else if (event.origin == TokenOrigin::corrected) {
      ++n_judged_;
    }
  }

  Generator generator_;
  const TreeProfileOptions* options_;
  std::vector<std::int64_t> accepted_;  // per rank
  std::int64_t n_judged_ = 0;
  std::int64_t n_drafted_ = 0;
  std::vector<double> seconds_;  // one per text
};

}  // namespace

TreeProfile measure_tree_profile(const std::shared_ptr<const Model>& model,
                                 const SpeculationOptions& speculation,
                                 const TreeProfileOptions& options) {
  check(*model, speculation, options);
  const auto beginnings = text_beginnings(model->tokenizer(), options.texts, kOperation);
  const auto step = [&options](std::string_view what, double share) {
    if (options.progress) options.progress(what, share);
  };
  step("loading drafter", 0);
  const std::string siblings = ",siblings=" + options.siblings;
  Continuation flat(model, speculation, fmt::format("widths:{}{}", options.ranks, siblings),
                    options);
  std::string levels = fmt::format("widths:{}", options.ranks);
  for (int level = 1; level < kDeepLevels; ++level) levels += ",1";
  Continuation deep(model, speculation, levels + siblings, options);
  for (std::size_t text = 0; text < beginnings.size(); ++text) {
    step("continuing texts",
         (1 - kShareOfPasses) * static_cast<double>(text) / static_cast<double>(beginnings.size()));
    flat.go_on(beginnings[text], text);
    deep.go_on(beginnings[text], text);
  }

  if (flat.n_judged() == 0) {
    throw Error(kOperation, speculation.drafter, "drafts to count on these texts",
                "none (is its context too short?)");
  }
  if (options.ranks > 1 && flat.n_drafted() <= flat.n_judged()) {
    throw UsageError(kOperation, speculation.drafter, "a drafter that drafts trees as it is told",
                     "one that drafts chains");
  }

  TreeProfile profile{.target = model->path().string(),
                      .drafter = speculation.drafter,
                      .temperature = options.texts.sampling.temperature,
                      .siblings = options.siblings,
                      .accept_by_rank = flat.shares(),
                      .n_nodes = flat.n_judged(),
                      .draft_seconds = 0,
                      .level_seconds = 0,
                      .passes = {}};
  profile.level_seconds =
      std::max(0.0, (deep.draft_seconds() - flat.draft_seconds()) / (kDeepLevels - 1));
  profile.draft_seconds = std::max(0.0, flat.draft_seconds() - profile.level_seconds);

  std::vector<int> rows;
  for (int power = 1; power <= options.max_nodes; power *= 2) rows.push_back(power);
  rows.push_back(options.max_nodes + 1);
  profile.passes = profile_passes(*model, options.texts, rows, options.rounds,
                                  [&step](std::string_view what, double share) {
                                    step(what, 1 - kShareOfPasses * (1 - share));
                                  });
  return profile;
}

}  // namespace outrider
