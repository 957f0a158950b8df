// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/draft_planner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

namespace outrider {
namespace {

// Constants without another reason were chosen by the simulation in draft_planner_test.cc.

// Expected new tokens per text before any has ended; it counts as one text. Later the mean is that
// of the last ten or so.
constexpr double kFirstLength = 256;
constexpr double kLengthFollows = 0.1;
// The share of time that looks (trial predictions) may take while drafts are off, and the least
// time between two, in passes of one row. All in all, what is not plain decoding stays below two
// percent.
constexpr double kLookShare = 0.015;
constexpr double kFewestBetween = 32;
// How many of a text's last tokens a look predicts, and the most looks in a row. From so few tokens
// a good drafter predicts about half as well as from the whole text (Qwen2.5-Coder 0.5B for 1.5B:
// 0.35 after 4 tokens, 0.37 after 8, 0.58 after 16, 0.80 after all).
constexpr std::size_t kLooked = 7;
constexpr double kShortOfAll = 0.5;
constexpr double kMaxLooked = 3 * (kLooked - 1);
// Rounds with drafts after which a drafter counts as useful again; and the most by which looks get
// rarer if it was not.
constexpr int kBackToStay = 64;
constexpr double kMaxPatience = 16;
// If drafts gain or lose less than this factor, one round in kRoundsAlike is of the other kind: a
// tenth of a percent of the time at most.
constexpr double kAboutAsFast = 1.15;
constexpr int kRoundsAlike = 128;
// The same for larger gains, but rarer, so that one disturbed pass does not decide for long.
constexpr int kRarer = 8;
// Rounds for which prices stay valid (and, if nothing is learned, the token at which drafts begin):
// computing either takes as long as a whole plan.
constexpr int kRoundsPriced = 8;
constexpr double kSameRate = 0.01;  // also while tokens per second change by less
// Rounds of drafts from the last tokens (recent_only) after which new texts are assumed to be like
// earlier ones. They come from a few texts at least, since a text gives up within three rounds if
// such drafts are useless.
constexpr double kSureOfRecent = 40;
// Depth of a trial draft, if the drafter cannot look.
constexpr int kTrialDepth = 2;
// Rounds for which a plan without drafts stays valid while nothing is learned: for a model of seven
// million parameters each plan takes a percent of a pass.
constexpr int kRoundsOff = 32;

bool same_text(const PlannedText& a, const PlannedText& b) {
  return a.past == b.past && a.prior == b.prior && a.drafter == b.drafter &&
         a.deepest == b.deepest && a.fixed == b.fixed;
}

}  // namespace

DraftPlanner::DraftPlanner(std::function<double()> now)
    : now_(std::move(now)), mean_length_(kFirstLength) {
  if (now_) return;
  now_ = [] {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(since).count();
  };
}

void DraftPlanner::measure(LanguageModel& target) { passes_ = measure_passes(target); }

// Found by address: a drafter that replaces another at the same address starts with its past.
const DraftPlanner::OfDrafter* DraftPlanner::find(const Drafter* drafter) const {
  const auto at = std::find_if(drafters_.begin(), drafters_.end(),
                               [drafter](const OfDrafter& one) { return one.drafter == drafter; });
  return at == drafters_.end() ? nullptr : &*at;
}

std::size_t DraftPlanner::index_of(Drafter* drafter) {
  const OfDrafter* const known = find(drafter);
  if (known != nullptr) return static_cast<std::size_t>(known - drafters_.data());
  drafters_.emplace_back().drafter = drafter;
  return drafters_.size() - 1;
}

KnownOfDrafter::Drafts& DraftPlanner::drafts_of(OfDrafter& of, const Stream& stream) {
  return stream.transform.greedy() ? of.known.greedy : of.known.drawn;
}

const KnownOfDrafter* DraftPlanner::known(const Drafter* drafter) const {
  const OfDrafter* const of = find(drafter);
  return of == nullptr ? nullptr : &of->known;
}

void DraftPlanner::set_known(Drafter* drafter, KnownOfDrafter known) {
  drafters_[index_of(drafter)].known = std::move(known);
}

bool DraftPlanner::reads_prompts(const Drafter* drafter) const {
  const OfDrafter* const of = find(drafter);
  return of == nullptr || (of->pays && of->reads_prompts);
}

void DraftPlanner::plan(std::span<const Text> texts) {
  for (const Text& text : texts) text.drafting->stop_.begin_free();
  if (passes_.empty()) return;
  // Comes first, since the list of drafters must not move afterwards.
  for (const Text& text : texts) {
    Drafter* const drafter = text.share->stream->drafting.drafter;
    if (drafter == nullptr) continue;
    index_of(drafter);
    for (const Drafter::Option& option : drafter->choices()) index_of(option.drafter);
  }
  levels_.clear();
  for (const OfDrafter& of : drafters_) levels_.push_back(&of.known.levels);
  const int n_prompt_before = n_prompt_;
  planned_.swap(planned_before_);
  planned_.clear();
  of_round_.clear();
  n_prompt_ = 0;
  for (std::size_t index = 0; index < texts.size(); ++index) {
    n_prompt_ += static_cast<int>(texts[index].share->n_to_run);
    if (texts[index].share->n_to_run == 0) add_planned(texts, index);
  }
  const bool stands = n_rounds_off_ % kRoundsOff != 0 && n_prompt_ == n_prompt_before &&
                      std::equal(planned_.begin(), planned_.end(), planned_before_.begin(),
                                 planned_before_.end(), same_text);
  if (!stands) step_planner_.plan(planned_, passes_, levels_, n_prompt_);
  depths_ = step_planner_.depths();
  const bool off =
      std::all_of(depths_.begin(), depths_.end(), [](int depth) { return depth == 0; });
  n_rounds_off_ = off ? n_rounds_off_ + 1 : 0;
  compare(off);
  set_shares(texts);
  try_again(texts);
}

// If drafts are about as fast as plain decoding, a round without one is run now and then: only it
// shows the cost of such a pass. Without drafts, looks and trials show the cost of drafts.
void DraftPlanner::compare(bool off) {
  is_comparing_ = false;
  const double gain = step_planner_.gain();
  if (off || n_prompt_ > 0) return;
  const int every = gain > kAboutAsFast ? kRarer * kRoundsAlike : kRoundsAlike;
  if (++n_rounds_alike_ < every) return;
  for (std::size_t i = 0; i < planned_.size(); ++i) {
    if (planned_[i].fixed || of_round_[i].rates || depths_[i] == 0) continue;
    depths_[i] = 0;
    is_comparing_ = true;
  }
  if (is_comparing_) n_rounds_alike_ = 0;
}

void DraftPlanner::add_planned(std::span<const Text> texts, std::size_t index) {
  const Text& text = texts[index];
  PlannedText planned;
  OfRound of_round{.text = index};
  const Drafter* const drafter = text.share->stream->drafting.drafter;
  if (drafter != nullptr) {
    of_round.chooses = text.adaptive && !drafter->choices().empty();
    if (of_round.chooses) {
      choose_option(text, planned, of_round);
    } else {
      plan_option(text, planned, of_round);
    }
  }
  planned_.push_back(planned);
  of_round_.push_back(of_round);
}

// Chooses, among the options that may run a model, the one with which the text alone would be
// fastest. If none pays, the options take turns to be looked at. If no option runs a model, the
// first.
void DraftPlanner::choose_option(const Text& text, PlannedText& planned, OfRound& of_round) {
  const std::span<const Drafter::Option> options = text.share->stream->drafting.drafter->choices();
  double best = -1;
  bool any_pays = false;
  std::size_t n_costly = 0;
  std::size_t in_turn = 0;  // the option whose turn it is
  for (std::size_t option = 0; option < options.size(); ++option) {
    if (options[option].drafter->rates_tokens()) continue;
    if (n_costly++ <= turn_ % options.size()) in_turn = option;
    PlannedText with;
    OfRound its = of_round;
    its.option = option;
    plan_option(text, with, its);
    option_planner_.plan({&with, 1}, passes_, levels_, 0);
    any_pays = any_pays || option_planner_.depths()[0] > 0;
    if (option_planner_.tokens_per_second() <= best) continue;
    best = option_planner_.tokens_per_second();
    planned = with;
    of_round = its;
  }
  if (any_pays) return;
  of_round.option = n_costly > 0 ? in_turn : 0;
  plan_option(text, planned, of_round);
}

void DraftPlanner::plan_option(const Text& text, PlannedText& planned, OfRound& of_round) {
  const Stream& stream = *text.share->stream;
  Drafter* drafter = stream.drafting.drafter;
  const TreeShape* shape = stream.drafting.shape.get();
  if (of_round.chooses) {
    const Drafter::Option& option = drafter->choices()[of_round.option];
    drafter = option.drafter;
    shape = option.shape;
  }
  const std::size_t at = index_of(drafter);
  planned.deepest = std::min(shape->depth(), DraftPast::kDeepest);
  planned.fixed = !text.adaptive;
  of_round.rates = text.adaptive && drafter->rates_tokens();
  planned.ends_itself = of_round.rates || (shape->is_chain() && drafter->traits().has_draft_prob);
  planned.drafter = static_cast<int>(at);
  planned.further_level = drafter->traits().further_level;
  plan_whole(text, planned, of_round);
  // If the verification depends on the draft, another start would give another text.
  const Acceptance& acceptance = *stream.drafting.acceptance;
  const bool may_be_recent =
      text.adaptive && !acceptance.needs().draft_prob && acceptance.prefix_determined();
  const std::size_t n_recent = drafter->n_behind_recent(stream.context());
  if (!may_be_recent || of_round.waits || n_recent == of_round.n_behind) return;
  // A draft from the text's last tokens costs less and is accepted less often.
  PlannedText recent = planned;
  OfRound of_recent = of_round;
  plan_recent(text, recent, of_recent);
  DraftingText::OfOption& own = text.drafting->of(of_round.option);
  if (own.n_rounds_unchanged++ % kRoundsOff == 0) {
    const auto rate_to_its_end = [this](const PlannedText& text_so) {
      return option_planner_.rate_to_its_end(text_so, passes_, levels_);
    };
    own.is_recent = rate_to_its_end(recent) >= rate_to_its_end(planned);
  }
  if (!own.is_recent) return;
  planned = recent;
  of_round = of_recent;
}

void DraftPlanner::plan_whole(const Text& text, PlannedText& planned, OfRound& of_round) {
  const Stream& stream = *text.share->stream;
  OfDrafter& of = drafters_[static_cast<std::size_t>(planned.drafter)];
  of_round.is_recent = false;
  planned.past = &text.drafting->of(of_round.option).past;
  planned.prior = &drafts_of(of, stream).past;
  plan_catching_up(text, of.drafter->n_behind(stream.context()), planned, of_round);
}

// A text without data is assumed to need no more than its last tokens, if few earlier texts needed
// more: finding out costs a few passes.
const DraftPast& DraftPlanner::prior_of_recent(const KnownOfDrafter::Drafts& known) {
  const DraftPast& recent = known.recent_past;
  if (recent.n_rounds() >= kSureOfRecent || known.past.n_rounds() < kSupposed) return recent;
  const auto share = [](const DraftPast& past) {
    const DraftPast::Counts& first = past.counts()[0];
    return first.reached > 0 ? first.accepted / first.reached : 0;
  };
  // Also if a look has just found a higher rate than earlier texts had.
  const bool is_better = recent.n_rounds() >= kSupposed && share(recent) > share(known.past);
  return is_better ? recent : known.past;
}

void DraftPlanner::plan_recent(const Text& text, PlannedText& planned, OfRound& of_round) {
  const Stream& stream = *text.share->stream;
  OfDrafter& of = drafters_[static_cast<std::size_t>(planned.drafter)];
  KnownOfDrafter::Drafts& known = drafts_of(of, stream);
  planned.past = &text.drafting->of(of_round.option).recent_past;
  planned.prior = &prior_of_recent(known);
  of_round.is_recent = true;
  plan_catching_up(text, of.drafter->n_behind_recent(stream.context()), planned, of_round);
}

void DraftPlanner::plan_catching_up(const Text& text, std::size_t n_behind, PlannedText& planned,
                                    OfRound& of_round) {
  const Stream& stream = *text.share->stream;
  const OfDrafter& of = drafters_[static_cast<std::size_t>(planned.drafter)];
  of_round.n_behind = n_behind;
  of_round.waits = false;
  planned.catch_up_seconds = 0;
  planned.horizon = horizon(stream);
  if (!text.adaptive || n_behind <= kFewBehind) return;
  of_round.waits = static_cast<std::int64_t>(stream.tokens.size()) == stream.n_prompt;
  if (of_round.waits) planned.deepest = 0;
  planned.catch_up_seconds =
      passes_.scale() * of.known.seconds_a_token * static_cast<double>(n_behind);
}

// The expected number of tokens still to come, in which the drafter's catching up must pay off. A
// text longer than the mean is expected to continue for half of its length.
double DraftPlanner::horizon(const Stream& stream) const {
  const auto n_tokens = static_cast<std::int64_t>(stream.tokens.size());
  const auto n_generated = static_cast<double>(n_tokens - stream.n_prompt);
  return std::min(static_cast<double>(stream.max_total - n_tokens),
                  std::max({mean_length_ - n_generated, mean_length_ / 2, n_generated / 2}));
}

void DraftPlanner::ended(std::int64_t n_generated) {
  const double share = std::max(kLengthFollows, 1.0 / static_cast<double>(++n_ended_ + 1));
  mean_length_ += share * (static_cast<double>(n_generated) - mean_length_);
}

void DraftPlanner::set_shares(std::span<const Text> texts) {
  for (std::size_t drafter = 0; drafter < drafters_.size(); ++drafter) {
    OfDrafter& of = drafters_[drafter];
    const auto is_of = [&](std::size_t i) {
      return planned_[i].drafter == static_cast<int>(drafter);
    };
    int n_drafting = 0;
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      if (is_of(i) && depths_[i] > 0) ++n_drafting;
    }
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      if (!is_of(i) || planned_[i].fixed) continue;
      const Text& text = texts[of_round_[i].text];
      text.share->recent_only = of_round_[i].is_recent;
      if (of_round_[i].rates && !of_round_[i].chooses) {
        rate_by(of, text, 0, n_likely_to_draft(drafter));
        text.share->worth = &text.drafting->of(0).nodes;
        continue;
      }
      const bool is_whole = depths_[i] == DraftPast::kDeepest;
      if (!is_whole && !of_round_[i].chooses) {
        text.share->draft_depth = depths_[i];
      }
      if (!planned_[i].ends_itself || depths_[i] == 0) continue;
      const TrustCurve& trust = drafts_of(of, *text.share->stream).trust;
      text.drafting->stop_.begin(trust, text.drafting->of(of_round_[i].option).trust,
                                 prices(of, n_drafting, 1));
    }
  }
  for (std::size_t i = 0; i < planned_.size(); ++i) {
    if (of_round_[i].chooses) set_choice(texts[of_round_[i].text], i);
  }
}

void DraftPlanner::rate_by(OfDrafter& of, const Text& text, std::size_t option, int n_likely) {
  text.drafting->of(option).nodes.begin(drafts_of(of, *text.share->stream).trust,
                                        prices(of, n_likely, 0));
}

// A looked-up draft must gain at least as much as the planned one over a pass without drafts,
// divided by the texts.
void DraftPlanner::set_choice(const Text& text, std::size_t i) {
  const std::span<const Drafter::Option> options = text.share->stream->drafting.drafter->choices();
  DraftChoice& choice = text.drafting->choice_;
  choice.worths.assign(options.size(), nullptr);
  choice.part = of_round_[i].rates ? DraftChoice::kNone : static_cast<int>(of_round_[i].option);
  choice.depth = of_round_[i].rates ? 0 : depths_[i];
  const auto n_texts = static_cast<double>(planned_.size());
  const double plain =
      step_planner_.tokens_per_second() * passes_.seconds(static_cast<int>(planned_.size()));
  choice.floor = choice.depth > 0 ? std::max(plain / n_texts - 1, 0.0) : 0;
  for (std::size_t option = 0; option < options.size(); ++option) {
    if (!options[option].drafter->rates_tokens()) continue;
    rate_by(drafters_[index_of(options[option].drafter)], text, option, 1);
    choice.worths[option] = &text.drafting->of(option).nodes;
  }
  choice.taken = DraftChoice::kNone;
  text.share->choice = &choice;
}

// The expected number of this drafter's texts that will have a draft, if the drafter decides that
// itself.
int DraftPlanner::n_likely_to_draft(std::size_t drafter) const {
  double n = 0;
  for (const PlannedText& planned : planned_) {
    if (planned.drafter != static_cast<int>(drafter) || planned.prior == nullptr) continue;
    const DraftPast::Counts& first = planned.prior->counts()[0];
    if (first.rounds > 0) n += std::min(first.nodes / first.rounds, 1.0);
  }
  return std::max(1, static_cast<int>(n));
}

// The price of one more token after n_before drafted ones, of two more, and so on: the tokens that
// plain progress would give in that time. Computed again when its inputs change, and every few
// rounds.
const PayingStop::Prices& DraftPlanner::prices(OfDrafter& of, int n_drafting, int n_before) {
  const int n_rows = static_cast<int>(planned_.size()) + n_prompt_;
  OfDrafter::Priced& priced = of.priced;
  const std::array<int, 3> of_what = {n_rows, n_drafting, n_before};
  const double rate = step_planner_.tokens_per_second();
  const bool is_near = std::abs(rate - priced.rate) < kSameRate * rate;
  if (is_near && priced.of_what == of_what && ++priced.n_rounds < kRoundsPriced) {
    return priced.prices;
  }
  priced.of_what = of_what;
  priced.rate = rate;
  priced.n_rounds = 0;
  // A lookup costs nothing more per token. A declared cost of further levels is better than a
  // measured slope.
  const double share = of.drafter->traits().further_level;
  const double further = share < 1 ? share : of.further.in_mean_levels();
  const double a_level =
      of.drafter->rates_tokens()
          ? 0
          : passes_.scale() * further * of.known.levels.seconds(n_drafting) / n_drafting;
  for (std::size_t depth = 0; depth < priced.prices.size(); ++depth) {
    // The slope over several rows, since costs go in steps.
    const int before = n_rows + n_drafting * (static_cast<int>(depth) + n_before);
    const int n_more = 4 * n_drafting;
    const double more = passes_.seconds(before + n_more) - passes_.seconds(before);
    priced.prices[depth] = rate * (a_level + std::max(more, 0.0) / n_more);
  }
  return priced.prices;
}

// If no text drafts with a drafter any more, a look at the shortest text tests it from time to
// time. If the drafter cannot look, this text drafts.
void DraftPlanner::try_again(std::span<const Text> texts) {
  for (std::size_t drafter = 0; drafter < drafters_.size(); ++drafter) {
    OfDrafter& of = drafters_[drafter];
    of.trial = nullptr;
    if (is_comparing_) continue;
    const Text* shortest = nullptr;
    std::size_t option = 0;
    bool drafts = false;
    bool drafts_whole = false;
    bool rates = false;
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      if (planned_[i].drafter != static_cast<int>(drafter) || of_round_[i].waits) continue;
      const Text& text = texts[of_round_[i].text];
      drafts = drafts || depths_[i] > 0;
      drafts_whole = drafts_whole || (depths_[i] > 0 && !of_round_[i].is_recent);
      rates = rates || of_round_[i].rates;
      if (shortest == nullptr ||
          text.share->stream->tokens.size() < shortest->share->stream->tokens.size()) {
        shortest = &text;
        option = of_round_[i].option;
      }
    }
    if (shortest == nullptr || rates) continue;  // lookup drafters are never off
    if (drafts) {
      of.pays = true;
      of.reads_prompts = drafts_whole;
      of.seconds_off = 0;
      if (++of.n_rounds_on >= kBackToStay) of.patience = 1;
      continue;
    }
    if (of.pays) note_off(of);
    if (of.seconds_off < between_looks(of)) continue;
    // A rule that asks the drafter makes it run the text anyway.
    const Drafting& drafting = shortest->share->stream->drafting;
    if (!drafting.acceptance->needs().leaf_draft && look(of, *shortest, option)) continue;
    of.trial = shortest->share->stream;
    if (shortest->share->choice != nullptr) {
      shortest->share->choice->depth = kTrialDepth;
    } else {
      shortest->share->draft_depth = kTrialDepth;
    }
  }
}

void DraftPlanner::note_off(OfDrafter& of) const {
  of.pays = false;
  of.seconds_off = 0;
  of.n_looks = 1;
  of.n_seen = 0;
  of.n_foreseen = 0;
  if (of.n_rounds_on < kBackToStay) of.patience = std::min(2 * of.patience, kMaxPatience);
  of.n_rounds_on = 0;
}

double DraftPlanner::between_looks(const OfDrafter& of) const {
  return std::max(passes_.scale() * of.n_looks * of.look_seconds / kLookShare * of.patience,
                  kFewestBetween * passes_.seconds(1));
}

void DraftPlanner::suppose(KnownOfDrafter::Drafts& known, DraftingText::OfOption& own,
                           bool is_recent, double accepted) {
  (is_recent ? known.recent_past : known.past).suppose(kSupposed, accepted);
  (is_recent ? own.recent_past : own.past).suppose(kSupposed, accepted);
  known.trust.forget_all();
}

// Counts how many of the text's last tokens the drafter would have predicted. Returns false if it
// cannot tell.
bool DraftPlanner::look(OfDrafter& of, const Text& text, std::size_t option) {
  const Stream& stream = *text.share->stream;
  const double began = now_();
  const std::optional<double> n_foreseen = of.drafter->foreseen(stream.context(), kLooked);
  if (!n_foreseen) return false;
  of.look_seconds = (now_() - began) / passes_.scale();
  of.n_looks = of.n_seen > 0 ? of.n_looks + 1 : 1;
  of.seconds_off = 0;
  ++turn_;
  of.n_seen += static_cast<double>(std::min(kLooked, stream.tokens.size()) - 1);
  of.n_foreseen += *n_foreseen;
  if (of.n_foreseen < 0.5 || of.n_seen >= kMaxLooked) {
    of.n_seen = 0;
    of.n_foreseen = 0;
    return true;
  }
  // Drafts may pay: the next plan decides, and the next look checks.
  const double accepted = std::min(of.n_foreseen / of.n_seen / kShortOfAll, kBest);
  suppose(drafts_of(of, stream), text.drafting->of(option), text.share->recent_only, accepted);
  n_rounds_off_ = 0;
  of.seconds_off = between_looks(of) - static_cast<double>(kLooked - 1) * passes_.seconds(1);
  return true;
}

}  // namespace outrider
