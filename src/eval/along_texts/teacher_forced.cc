// SPDX-License-Identifier: Apache-2.0
#include "eval/along_texts/teacher_forced.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/elementary.h"
#include "eval/along_texts/forced_views.h"
#include "eval/frontiers/expected_passes.h"
#include "outrider/error.h"
#include "speculate/rules/make_rule.h"
#include "speculate/tree_shapes/tree_shape.h"
#include "tensor/team.h"

namespace outrider::eval {
namespace {

constexpr const char* kOperation = "measure rules";

// Runs the first tokens of a window in one pass of a new sequence, with logits for each.
void run(LanguageModel& model, const Window& window, int n_tokens, ForwardOutput& output) {
  const auto tokens = std::span(window.tokens).first(static_cast<std::size_t>(n_tokens));
  const auto sequence = model.open({.encoder_tokens = window.encoder_tokens, .n_tokens = n_tokens});
  const TokenBlock block{.sequence = sequence.get(), .tokens = tokens, .parents = {}};
  model.forward({&block, 1}, {.logits = {.kind = RowSet::Kind::all, .rows = {}}}, output);
}

// How many of the tokens the drafter can run: up to the first unknown one, within its context.
int n_known(const LanguageModel& drafter, int shared_vocabulary, std::span<const TokenId> tokens) {
  const auto unknown = std::find_if(tokens.begin(), tokens.end(), [&](TokenId token) {
    return token < 0 || token >= shared_vocabulary;
  });
  return static_cast<int>(
      std::min<std::ptrdiff_t>(unknown - tokens.begin(), drafter.config().context_length));
}

void require_numbers(const Distribution& raw, std::span<const float> logits, const char* whose) {
  // Only a row without any number has a NaN token in its support.
  if (!std::isnan(logits[static_cast<std::size_t>(raw.ids.front())])) return;
  throw Error(kOperation, fmt::format("the {}'s logits", whose), "numbers",
              "NaN (the model's weights may be broken)");
}

}  // namespace

// Distributions of up to `capacity` positions. Memory is reused between chunks.
struct TeacherForced::Distributions {
  struct OfPosition {
    Distribution raw_target, raw_draft;
    std::vector<Distribution> target, draft;  // under each transform
    bool has_draft = false;
  };
  std::vector<OfPosition> positions;
  ForwardOutput target_output, draft_output;
};

void check_forced(const ForcedOptions& options) {
  for (const int length : options.lengths) {
    if (length >= 1 && length <= kMaxDraftNodes) continue;
    throw UsageError(kOperation, "lengths", fmt::format("drafts of 1 to {}", kMaxDraftNodes),
                     fmt::format("{}", length));
  }
  bool some_greedy = false;
  for (const SamplingParams& sampling : options.samplings) {
    const Transform transform(sampling, std::numeric_limits<int>::max());
    if (transform.has_penalties()) {
      throw UsageError(kOperation, "transform", "temperature and truncation alone", "a penalty");
    }
    some_greedy = some_greedy || transform.greedy();
  }
  for (const RuleSetting& setting : options.rules) {
    if (!make_rule(setting.rule)->needs().greedy || some_greedy) continue;
    throw UsageError(kOperation, setting.rule, "temperature 0 among the temperatures",
                     "others alone");
  }
}

TeacherForced::TeacherForced(LanguageModel& target, LanguageModel& drafter,
                             const ForcedOptions& options)
    : target_(&target),
      drafter_(&drafter),
      lengths_(options.lengths),
      n_threads_(options.n_threads),
      dists_(std::make_unique<Distributions>()) {
  check_forced(options);
  for (const SamplingParams& sampling : options.samplings) {
    transforms_.emplace_back(sampling, target.config().vocabulary_size);
  }
  for (std::size_t index = 0; index < transforms_.size(); ++index) {
    for (const RuleSetting& setting : options.rules) {
      const std::shared_ptr<const Rule> rule = make_rule(setting.rule);
      if (rule->needs().greedy && !transforms_[index].greedy()) continue;
      settings_.push_back({.rule = setting, .sampling = options.samplings[index]});
      rules_.push_back(rule);
      transform_of_.push_back(index);
    }
  }
  acceptance_.resize(settings_.size());
  // At most a quarter of a gibibyte of distributions: a support has an id and a double per token.
  constexpr double kLargest_bytes = 256.0 * 1024 * 1024;
  const double position_bytes = 12.0 * target.config().vocabulary_size *
                                (2.0 + 2.0 * static_cast<double>(transforms_.size()));
  const double n_positions = std::clamp(kLargest_bytes / position_bytes, 1.0, 1024.0);
  dists_->positions.resize(static_cast<std::size_t>(n_positions));
  for (Distributions::OfPosition& position : dists_->positions) {
    position.target.resize(transforms_.size());
    position.draft.resize(transforms_.size());
  }
}

TeacherForced::~TeacherForced() = default;

void TeacherForced::add_text(std::span<const Window> windows, const Progress& progress) {
  std::int64_t n_positions = 0;
  const auto add_done = [&](int n) {
    n_positions += n;
    if (progress) progress(n_positions);
  };
  for (std::size_t index = 0; index < settings_.size(); ++index) {
    settings_[index].texts.emplace_back();
    acceptance_[index].clear();
  }
  for (const Window& window : windows) run_window(window, add_done);
  for (std::size_t index = 0; index < settings_.size(); ++index) {
    ForcedSums& sums = settings_[index].texts.back();
    for (const int length : lengths_) {
      sums.passes.push_back(expected_passes(acceptance_[index], length));
    }
  }
}

void TeacherForced::run_window(const Window& window, const std::function<void(int)>& add_done) {
  const int n_tokens = static_cast<int>(window.tokens.size());
  const int context = target_->config().context_length;
  if (n_tokens > context) {
    throw Error(kOperation, "window", fmt::format("at most the context's {} tokens", context),
                fmt::format("{}", n_tokens));
  }
  // Nothing is predicted after the last token.
  const std::span<const TokenId> read = std::span(window.tokens).first(window.tokens.size() - 1);
  if (n_tokens - window.n_given < 1) return;
  run(*target_, window, n_tokens - 1, dists_->target_output);
  add_done(0);
  const int shared =
      std::min(target_->config().vocabulary_size, drafter_->config().vocabulary_size);
  n_drafted_ = n_known(*drafter_, shared, read);
  if (n_drafted_ > 0) run(*drafter_, window, n_drafted_, dists_->draft_output);
  const int n_at_once = static_cast<int>(dists_->positions.size());
  for (int first = window.n_given - 1; first + 1 < n_tokens; first += n_at_once) {
    const int n = std::min(n_at_once, n_tokens - 1 - first);
    add_positions(window, first, n);
    add_done(n);
  }
}

// Adds the positions after tokens first .. first + n - 1 of the window.
void TeacherForced::add_positions(const Window& window, int first, int n) {
  const auto shared = static_cast<std::size_t>(
      std::min(target_->config().vocabulary_size, drafter_->config().vocabulary_size));
  run_team(n_threads_, [&](const Team& team) {
    const Range share = team.share(n);
    for (auto i = share.begin; i < share.end; ++i) {
      const int row = first + static_cast<int>(i);
      Distributions::OfPosition& dists = dists_->positions[static_cast<std::size_t>(i)];
      const std::span<const float> target_logits = dists_->target_output.logits_row(row);
      transforms_[0].raw_distribution(target_logits, dists.raw_target);
      dists.has_draft = row < n_drafted_;
      std::span<const float> draft_logits;
      if (dists.has_draft) {
        // Ids beyond the shared vocabulary are never drafted.
        draft_logits = dists_->draft_output.logits_row(row).first(shared);
        transforms_[0].raw_distribution(draft_logits, dists.raw_draft);
      }
      for (std::size_t index = 0; index < transforms_.size(); ++index) {
        transforms_[index].distribution(target_logits, dists.target[index]);
        if (dists.has_draft) transforms_[index].distribution(draft_logits, dists.draft[index]);
      }
    }
  });
  for (int i = 0; i < n; ++i) {
    const Distributions::OfPosition& dists = dists_->positions[static_cast<std::size_t>(i)];
    require_numbers(dists.raw_target, dists_->target_output.logits_row(first + i), "target");
    if (dists.has_draft) {
      require_numbers(dists.raw_draft, dists_->draft_output.logits_row(first + i), "drafter");
    }
  }
  run_team(n_threads_, [&](const Team& team) {
    Distribution rule_prob;
    // With a stride: neighbouring settings belong to one rule and cost alike.
    for (auto index = static_cast<std::size_t>(team.index()); index < settings_.size();
         index += static_cast<std::size_t>(team.size())) {
      const Rule& rule = *rules_[index];
      const std::size_t transform = transform_of_[index];
      ForcedSums& sums = settings_[index].texts.back();
      for (int i = 0; i < n; ++i) {
        const Distributions::OfPosition& dists = dists_->positions[static_cast<std::size_t>(i)];
        const Distribution* draft = dists.has_draft ? &dists.draft[transform] : nullptr;
        ForcedViews views({.target = &dists.target[transform],
                           .raw_target = &dists.raw_target,
                           .draft = draft,
                           .raw_draft = dists.has_draft ? &dists.raw_draft : nullptr},
                          sums.kl);
        rule.rule_prob(views, 0, rule_prob);
        const RuleCost cost = cost_of(rule, views, 0, rule_prob);
        const double accepted = draft == nullptr ? 0 : std::min(1.0, overlap(rule_prob, *draft));
        const double hit = rule_prob.prob(window.tokens[static_cast<std::size_t>(first + i + 1)]);
        ++sums.n_tokens;
        sums.rejection += 1 - accepted;
        sums.nll -= portable_log(hit);
        sums.hits += hit;
        sums.kl += cost.kl;
        sums.tv += cost.total_variation;
        sums.deferral += cost.deferral;
        acceptance_[index].push_back(accepted);
      }
    }
  });
}

}  // namespace outrider::eval
