// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/step_plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace outrider {
namespace {

// The factor by which the expected saving must exceed the cost of catching up. Recently accepted
// drafts are overrated: by two, while six rounds are known, the number with which a drafter
// returns.
double times_expected(const PlannedText& text) {
  constexpr double kFewRounds = 6;
  const double n_rounds = text.prior != nullptr ? text.prior->n_rounds() : text.past->n_rounds();
  return 1 + kFewRounds / std::max(kFewRounds, n_rounds);
}

}  // namespace

void StepPlanner::plan(std::span<const PlannedText> texts, const PassTimes& passes,
                       std::span<const PassTimes* const> levels, int n_prompt) {
  texts_ = texts;
  passes_ = &passes;
  levels_ = levels;
  n_prompt_ = n_prompt;
  look_ahead();
  n_drafting_.assign(levels.size() * DraftPast::kDeepest, 0);
  offers_.clear();
  depths_.assign(texts_.size(), 0);
  tokens_ = static_cast<double>(texts_.size());
  rows_ = tokens_;
  const auto n_texts = static_cast<int>(texts_.size());
  prompt_seconds_ = passes_->seconds(n_texts + n_prompt_) - passes_->seconds(n_texts);
  level_seconds_ = 0;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    if (texts_[i].fixed) take_fixed(i);
  }
  best_ = depths_;
  best_rate_ = rate();
  const double without = best_rate_;
  gain_ = 0;
  for (std::size_t i = 0; i < texts_.size(); ++i) offer(i);
  while (!offers_.empty()) {
    std::pop_heap(offers_.begin(), offers_.end());
    const Deeper deeper = offers_.back();
    offers_.pop_back();
    if (!wins_back(deeper)) continue;
    take(deeper);
    offer(deeper.text);
    const double now = rate();
    if (without > 0) gain_ = std::max(gain_, now / without);
    if (now > best_rate_) {
      best_rate_ = now;
      best_ = depths_;
    }
  }
}

double StepPlanner::rate_to_its_end(const PlannedText& text, const PassTimes& passes,
                                    std::span<const PassTimes* const> levels) {
  plan({&text, 1}, passes, levels, 0);
  const double n_tokens = std::max(text.horizon, 1.0);
  const double catch_up = depths()[0] > 0 ? times_expected(text) * text.catch_up_seconds : 0;
  return n_tokens / (n_tokens / tokens_per_second() + catch_up);
}

void StepPlanner::look_ahead() {
  first_.clear();
  first_.reserve(texts_.size());
  std::size_t n_depths = 0;
  for (const PlannedText& text : texts_) {
    first_.push_back(n_depths);
    n_depths += static_cast<std::size_t>(text.deepest);
  }
  outlook_.resize(n_depths);
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const PlannedText& text = texts_[i];
    if (text.deepest == 0) continue;
    text.past->look_ahead(
        text.prior, std::span(outlook_).subspan(first_[i], static_cast<std::size_t>(text.deepest)));
  }
}

void StepPlanner::take_fixed(std::size_t i) {
  Deeper all{.text = i, .depth = texts_[i].deepest};
  for (int depth = 1; depth <= texts_[i].deepest; ++depth) add(depth, all);
  take(all);
}

void StepPlanner::add(int depth, Deeper& deeper) const {
  const DraftPast::Depth& more = at(deeper.text, depth);
  deeper.tokens += more.accepted;
  deeper.rows += more.nodes;
}

// Offers the depth with the most tokens per row. Further depths give fewer, so taking the best
// offers of all texts first is best for any number of rows.
void StepPlanner::offer(std::size_t i) {
  const PlannedText& text = texts_[i];
  if (text.fixed || depths_[i] >= text.deepest) return;
  Deeper best;
  Deeper deeper{.text = i};
  for (int depth = depths_[i] + 1; depth <= text.deepest; ++depth) {
    add(depth, deeper);
    deeper.depth = depth;
    if (best.depth == 0 || best < deeper || text.ends_itself) best = deeper;
  }
  offers_.push_back(best);
  std::push_heap(offers_.begin(), offers_.end());
}

// Whether drafts save the drafter's cost of catching up within the text's horizon.
bool StepPlanner::wins_back(const Deeper& deeper) {
  const PlannedText& text = texts_[deeper.text];
  if (text.catch_up_seconds <= 0 || depths_[deeper.text] > 0) return true;
  const double now = rate();
  take(deeper);
  const double then = rate();
  const double tokens_then = tokens_;
  take({.text = deeper.text, .depth = 0, .tokens = -deeper.tokens, .rows = -deeper.rows});
  if (now <= 0 || then <= 0) return true;
  const double n_rounds = text.horizon / (1 + deeper.tokens);
  const double saved = tokens_then / now - tokens_then / then;  // per round, over all texts
  return n_rounds * saved > times_expected(text) * text.catch_up_seconds;
}

void StepPlanner::take(const Deeper& deeper) {
  const PlannedText& text = texts_[deeper.text];
  tokens_ += deeper.tokens;
  rows_ += deeper.rows;
  const int before = depths_[deeper.text];
  depths_[deeper.text] = deeper.depth;
  if (text.drafter < 0) return;
  const auto drafter = static_cast<std::size_t>(text.drafter);
  double* const n_at = &n_drafting_[drafter * DraftPast::kDeepest];
  const auto add_texts = [&](int depth, double n_more) {
    const double share = depth == 1 ? 1 : text.further_level;
    double& n = n_at[depth - 1];
    level_seconds_ -= share * level_seconds(drafter, n);
    n += n_more;
    level_seconds_ += share * level_seconds(drafter, n);
  };
  for (int depth = before + 1; depth <= deeper.depth; ++depth) {
    add_texts(depth, std::min(at(deeper.text, depth).nodes, 1.0));
  }
  for (int depth = deeper.depth + 1; depth <= before; ++depth) {
    add_texts(depth, -std::min(at(deeper.text, depth).nodes, 1.0));
  }
}

// The time of one level for n_texts texts; below one, the share of rounds that have such a level.
double StepPlanner::level_seconds(std::size_t drafter, double n_texts) const {
  if (n_texts <= 0) return 0;
  const auto n_at_once = static_cast<int>(std::lround(std::max(n_texts, 1.0)));
  return std::min(n_texts, 1.0) * passes_->scale() * levels_[drafter]->seconds(n_at_once);
}

// Tokens per second. Drafted rows cost what they add to the prompts' rows.
double StepPlanner::rate() const {
  const double seconds = pass_seconds(rows_ + n_prompt_) - prompt_seconds_ + level_seconds_;
  return seconds > 0 ? tokens_ / seconds : 0;
}

// The time of a pass, interpolated for an expected number of rows.
double StepPlanner::pass_seconds(double n_rows) const {
  const double below = std::floor(n_rows);
  const double seconds = passes_->seconds(static_cast<int>(below));
  return seconds + (n_rows - below) * (passes_->seconds(static_cast<int>(below) + 1) - seconds);
}

}  // namespace outrider
