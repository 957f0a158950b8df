// SPDX-License-Identifier: Apache-2.0
// DraftPlanner after a round: learns from the results and times of its drafts.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/drafting/draft_planner.h"

namespace outrider {
namespace {

// The rate of adapting a drafter's cost of catching up; chosen by draft_planner_test.cc's
// simulation.
constexpr double kFollow = 0.3;

}  // namespace

void DraftPlanner::learn(std::span<const Text> texts, const RoundTimes& times,
                         const std::function<double(const Drafter*)>& draft_seconds) {
  if (passes_.empty()) return;
  int n_rows = 0;
  for (std::size_t i = 0; i < planned_.size(); ++i) {
    const Text& text = texts[of_round_[i].text];
    n_rows += text.share->stream->tree.n_nodes();
    if (planned_[i].drafter < 0) continue;
    find_used(text, i);
    learn_of(text, i);
  }
  // Prompt rows cost less than others, since they need no logits.
  if (n_prompt_ == 0) passes_.add(n_rows, times.forward + times.verify);
  for (std::size_t drafter = 0; drafter < drafters_.size(); ++drafter) {
    Drafted drafted;
    const Drafter* asked = drafters_[drafter].drafter;
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      if (of_round_[i].used != static_cast<int>(drafter)) continue;
      const Stream& stream = *texts[of_round_[i].text].share->stream;
      asked = stream.drafting.drafter;
      const DraftTree& tree = stream.tree;
      if (of_round_[i].limit == 0 || tree.n_drafted() == 0) continue;
      ++drafted.n_texts;
      drafted.n_nodes += tree.n_nodes() - 1;
      drafted.deepest = std::max(drafted.deepest, tree.depth());
      drafted.n_behind += of_round_[i].n_behind;
    }
    OfDrafter& of = drafters_[drafter];
    // A looked-up draft has replaced the trial.
    const bool was_tried = std::any_of(of_round_.begin(), of_round_.end(), [&](const OfRound& one) {
      return one.used == static_cast<int>(drafter) && texts[one.text].share->stream == of.trial;
    });
    if (!was_tried) of.trial = nullptr;
    // If several drafters drafted together, their separate times are unknown.
    if (drafted.n_texts < n_drafted_by(texts, asked)) drafted = {};
    learn_costs(of, drafted, draft_seconds(asked), times.draft + times.forward + times.verify);
  }
}

// Finds which drafter made the text's draft, and how deep it could have been.
void DraftPlanner::find_used(const Text& text, std::size_t i) {
  OfRound& of_round = of_round_[i];
  const Stream& stream = *text.share->stream;
  of_round.used = planned_[i].drafter;
  of_round.limit = std::min(text.share->draft_depth, stream.drafting.shape->depth());
  if (!of_round.chooses) return;
  const DraftChoice& choice = text.drafting->choice_;
  const int part = choice.taken != DraftChoice::kNone ? choice.taken : choice.part;
  of_round.limit = 0;
  if (part == DraftChoice::kNone) {
    // No looked-up draft paid: that counts as an empty draft of the planned option.
    if (of_round.rates) of_round.limit = planned_[i].deepest;
    return;
  }
  const Drafter::Option& option =
      stream.drafting.drafter->choices()[static_cast<std::size_t>(part)];
  of_round.option = static_cast<std::size_t>(part);
  of_round.used = static_cast<int>(index_of(option.drafter));
  of_round.limit = part == choice.part ? choice.depth : option.shape->depth();
  if (part == choice.part) return;
  of_round.n_behind = 0;
  of_round.is_recent = false;
}

// The number of the round's texts with a draft of this drafter, or of one that it chose.
int DraftPlanner::n_drafted_by(std::span<const Text> texts, const Drafter* asked) const {
  return static_cast<int>(
      std::count_if(of_round_.begin(), of_round_.end(), [&](const OfRound& one) {
        const Stream& stream = *texts[one.text].share->stream;
        return stream.drafting.drafter == asked && stream.tree.n_drafted() > 0;
      }));
}

void DraftPlanner::learn_of(const Text& text, std::size_t i) {
  const Stream& stream = *text.share->stream;
  const OfRound& of_round = of_round_[i];
  learn_worth(text, i);
  if (of_round.limit == 0) return;
  if (stream.tree.n_drafted() > 0) n_rounds_off_ = 0;
  OfDrafter& of = drafters_[static_cast<std::size_t>(of_round.used)];
  KnownOfDrafter::Drafts& known = drafts_of(of, stream);
  DraftingText::OfOption& option = text.drafting->of(of_round.option);
  DraftPast& own = of_round.is_recent ? option.recent_past : option.past;
  DraftPast& of_all = of_round.is_recent ? known.recent_past : known.past;
  option.n_rounds_unchanged = 0;
  const auto accepted = static_cast<int>(stream.verdict.path.size());
  if (of.trial == &stream && accepted > 0) {
    suppose(known, option, of_round.is_recent, kBest);
    option.trust.forget();
  }
  for (DraftPast* const past : {&own, &of_all}) {
    past->forget();
    past->add(stream.tree, of_round.limit, accepted);
  }
  const std::span<const double> raw_probs = text.drafting->stop_.raw_probs();
  const auto n_drafted = static_cast<std::size_t>(stream.tree.n_drafted());
  if (!stream.tree.is_chain() || raw_probs.size() != n_drafted) return;
  const std::size_t n_judged = std::min(raw_probs.size(), static_cast<std::size_t>(accepted) + 1);
  for (std::size_t place = 0; place < n_judged; ++place) {
    const bool stood = static_cast<int>(place) < accepted;
    option.trust.add(known.trust.stands(raw_probs[place]), stood);
    known.trust.add(raw_probs[place], stood);
  }
}

// Learns how certainties relate to acceptance, from used and unused drafts.
void DraftPlanner::learn_worth(const Text& text, std::size_t i) {
  const Stream& stream = *text.share->stream;
  const Verdict& verdict = stream.verdict;
  const auto trust_of = [&](Drafter* drafter) -> TrustCurve& {
    return drafts_of(drafters_[index_of(drafter)], stream).trust;
  };
  if (text.share->worth != nullptr) {
    text.drafting->of(0).nodes.learn(stream.tree, verdict, trust_of(stream.drafting.drafter));
  }
  if (!of_round_[i].chooses) return;
  const DraftChoice& choice = text.drafting->choice_;
  const TokenId first =
      verdict.path.empty() ? verdict.next : stream.tree.node(verdict.path.front()).token;
  for (std::size_t option = 0; option < choice.worths.size(); ++option) {
    if (choice.worths[option] == nullptr) continue;
    TrustCurve& trust = trust_of(stream.drafting.drafter->choices()[option].drafter);
    const PayingNodes& nodes = text.drafting->of(option).nodes;
    if (choice.taken == static_cast<int>(option)) {
      nodes.learn(stream.tree, verdict, trust);
    } else {
      nodes.learn_aside(first, trust);
    }
  }
}

void DraftPlanner::learn_costs(OfDrafter& of, const Drafted& drafted, double draft_seconds,
                               double round_seconds) {
  of.seconds_off += round_seconds;
  draft_seconds /= passes_.scale();
  if (of.trial != nullptr) {
    const double rows = passes_.seconds(1 + drafted.n_nodes) - passes_.seconds(1);
    of.look_seconds = draft_seconds + std::max(rows, 0.0) / passes_.scale();
    of.seconds_off = 0;
    return;
  }
  if (drafted.deepest == 0) return;
  const double further = of.drafter->traits().further_level;
  const double n_levels = 1 + further * (drafted.deepest - 1);  // costs like the first
  const double level = of.known.levels.seconds(drafted.n_texts);
  if (drafted.n_behind > kFewBehind * static_cast<std::size_t>(drafted.n_texts)) {
    const double a_token =
        std::max(0.0, draft_seconds - n_levels * level) / static_cast<double>(drafted.n_behind);
    const bool is_first = of.known.seconds_a_token <= 0 || of.has_guessed_catch_up;
    of.known.seconds_a_token += (is_first ? 1 : kFollow) * (a_token - of.known.seconds_a_token);
    of.has_guessed_catch_up = level <= 0;
    return;
  }
  if (level > 0) of.further.add(n_levels, draft_seconds / level);
  of.known.levels.add(drafted.n_texts, draft_seconds / n_levels);
}

}  // namespace outrider
