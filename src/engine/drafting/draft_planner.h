// SPDX-License-Identifier: Apache-2.0
// Plans drafts (step_plan.h) and keeps the plan's input: the costs of passes and the results of
// earlier drafts.
#ifndef OUTRIDER_ENGINE_DRAFTING_DRAFT_PLANNER_H_
#define OUTRIDER_ENGINE_DRAFTING_DRAFT_PLANNER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/drafting/draft_past.h"
#include "engine/drafting/further_level.h"
#include "engine/drafting/pass_times.h"
#include "engine/drafting/paying_nodes.h"
#include "engine/drafting/paying_stop.h"
#include "engine/drafting/step_plan.h"
#include "engine/drafting/trust_of_text.h"
#include "speculate/decoder.h"

namespace outrider {

// The planner's state of one running text. Not thread-safe.
class DraftingText {
 public:
  // stop: the request's own rule; may be null, and must outlive the text.
  explicit DraftingText(const StopRule* stop) : stop_(stop) {}
  // The stop rule for a text with planned drafts, instead of its own.
  const StopRule* stop() const { return &stop_; }

 private:
  friend class DraftPlanner;
  // About twenty rounds count, which is a sentence or two.
  static constexpr double kKeeps = 0.95;

  // State for one drafter, or for one option of a drafter with choices.
  struct OfOption {
    DraftPast past = DraftPast(kKeeps);
    // Drafts with DraftJob::recent_only. Texts of some kinds need their whole prompts, others only
    // the last tokens; so the prior of other texts' drafts has little weight.
    DraftPast recent_past = DraftPast(kKeeps, /*prior_rounds=*/2);
    bool is_recent = false;      // its next draft has recent_only
    int n_rounds_unchanged = 0;  // since that decision, or since something was learnt
    TrustOfText trust;
    PayingNodes nodes;
  };
  OfOption& of(std::size_t option) {
    while (options_.size() <= option) options_.push_back(std::make_unique<OfOption>());
    return *options_[option];
  }

  PayingStop stop_;
  std::vector<std::unique_ptr<OfOption>> options_;
  DraftChoice choice_;
};

// What is known about a drafter. Times are given for PassTimes::scale() 1 of the target's passes. A
// slower machine slows both, also while the drafter is off.
struct KnownOfDrafter {
  struct Drafts {
    DraftPast past = DraftPast(kKeeps);
    DraftPast recent_past = DraftPast(kKeeps);  // with DraftJob::recent_only
    TrustCurve trust;

    // About a hundred rounds count, so that a few texts of one kind do not decide for another.
    static constexpr double kKeeps = 0.99;
  };
  // Acceptance differs between greedy and sampled texts.
  Drafts greedy;
  Drafts drawn;
  PassTimes levels;            // seconds of one draft level, by texts
  double seconds_a_token = 0;  // of catching up; 0: unknown
};

// Plans and learns for one batch. Not thread-safe.
class DraftPlanner {
 public:
  // now: a clock in seconds; by default the steady clock.
  explicit DraftPlanner(std::function<double()> now = {});

  // A text of the round, including those that run prompt tokens.
  struct Text {
    StreamShare* share = nullptr;
    bool adaptive = false;  // its drafts may be planned
    DraftingText* drafting = nullptr;
  };

  void measure(LanguageModel& target);
  // Access to what was learnt, for files; the setters replace it.
  const PassTimes& passes() const { return passes_; }
  void set_passes(PassTimes passes) { passes_ = std::move(passes); }
  const KnownOfDrafter* known(const Drafter* drafter) const;
  void set_known(Drafter* drafter, KnownOfDrafter known);
  bool is_measured() const { return !passes_.empty(); }
  // Whether, when texts with this drafter last decoded, some text drafted by it from all of its
  // tokens; initially true.
  bool reads_prompts(const Drafter* drafter) const;
  // Sets the drafts of adaptive texts; does nothing if nothing was measured.
  void plan(std::span<const Text> texts);
  // Reports a text that ended with n_generated new tokens.
  void ended(std::int64_t n_generated);
  // Must be called after the planned round, before anything else happens to its texts.
  // draft_seconds: a drafter's time for drafts in the round (Decoder::draft_seconds).
  void learn(std::span<const Text> texts, const RoundTimes& times,
             const std::function<double(const Drafter*)>& draft_seconds);

 private:
  // Tokens that a drafter catches up with beside the others of a round without taking longer. This
  // and the following constants were chosen by the simulation in draft_planner_test.cc.
  static constexpr std::size_t kFewBehind = 8;
  // The weight, in rounds, of a supposed acceptance rate, and its maximum.
  static constexpr double kSupposed = 6;
  static constexpr double kBest = 0.9;

  struct OfDrafter {
    Drafter* drafter = nullptr;
    KnownOfDrafter known;
    FurtherLevel further;
    bool has_guessed_catch_up = false;  // from drafts whose first levels included catching up
    bool pays = true;                   // some text drafted in the last plan
    bool reads_prompts = true;          // and from more than its last tokens
    double seconds_off = 0;             // time of rounds since then, or since the last look
    double look_seconds = 0;            // of one look at it, or of a trial; 0: unknown
    int n_looks = 1;                    // consecutive looks without turning it on
    double patience = 1;    // factor between looks: it grows if the drafter was turned on in vain
    int n_rounds_on = 0;    // since it was turned on
    double n_seen = 0;      // tokens of the consecutive looks
    double n_foreseen = 0;  // of these, correctly foreseen
    struct Priced {
      std::array<int, 3> of_what{};  // rows, texts that draft, drafted tokens before
      double rate = 0;               // tokens a second
      int n_rounds = 0;
      PayingStop::Prices prices{};
    };
    Priced priced;
    const Stream* trial = nullptr;  // the text that tries it in this round
  };
  // A text of planned_.
  struct OfRound {
    std::size_t text = 0;      // index in the round
    std::size_t n_behind = 0;  // Drafter::n_behind() before the round, or n_behind_recent()
    bool waits = false;        // for its first token, so drafts bring nothing
    bool rates = false;        // its drafts follow DraftWorth
    std::size_t option = 0;    // of the text's drafter, as in planned_
    bool is_recent = false;    // DraftJob::recent_only
    bool chooses = false;      // among several options
    // After the round: the drafter that was used, and the depth that its draft could have had.
    int used = -1;
    int limit = 0;
  };
  // A drafter's work in the round.
  struct Drafted {
    int deepest = 0;
    int n_texts = 0;  // that drafted
    int n_nodes = 0;
    std::size_t n_behind = 0;
  };
  const OfDrafter* find(const Drafter* drafter) const;
  std::size_t index_of(Drafter* drafter);
  static KnownOfDrafter::Drafts& drafts_of(OfDrafter& of, const Stream& stream);
  static void suppose(KnownOfDrafter::Drafts& known, DraftingText::OfOption& own, bool is_recent,
                      double accepted);
  void compare(bool off);
  void add_planned(std::span<const Text> texts, std::size_t index);
  void plan_option(const Text& text, PlannedText& planned, OfRound& of_round);
  void plan_whole(const Text& text, PlannedText& planned, OfRound& of_round);
  void plan_recent(const Text& text, PlannedText& planned, OfRound& of_round);
  static const DraftPast& prior_of_recent(const KnownOfDrafter::Drafts& known);
  void plan_catching_up(const Text& text, std::size_t n_behind, PlannedText& planned,
                        OfRound& of_round);
  void choose_option(const Text& text, PlannedText& planned, OfRound& of_round);
  void set_choice(const Text& text, std::size_t i);
  void rate_by(OfDrafter& of, const Text& text, std::size_t option, int n_likely);
  void set_shares(std::span<const Text> texts);
  const PayingStop::Prices& prices(OfDrafter& of, int n_drafting, int n_before);
  int n_likely_to_draft(std::size_t drafter) const;
  double horizon(const Stream& stream) const;
  void try_again(std::span<const Text> texts);
  void note_off(OfDrafter& of) const;
  double between_looks(const OfDrafter& of) const;
  bool look(OfDrafter& of, const Text& text, std::size_t option);
  void find_used(const Text& text, std::size_t i);
  int n_drafted_by(std::span<const Text> texts, const Drafter* asked) const;
  void learn_of(const Text& text, std::size_t i);
  void learn_worth(const Text& text, std::size_t i);
  void learn_costs(OfDrafter& of, const Drafted& drafted, double draft_seconds,
                   double round_seconds);

  std::function<double()> now_;
  PassTimes passes_;
  double mean_length_;  // of the ended texts
  std::int64_t n_ended_ = 0;
  std::vector<OfDrafter> drafters_;

  // State of the round.
  std::vector<PlannedText> planned_;
  std::vector<PlannedText> planned_before_;  // of the previous round
  std::vector<OfRound> of_round_;            // for each of planned_
  int n_prompt_ = 0;                         // rows of prompts
  std::vector<int> depths_;                  // for each of planned_: the depth of its draft
  std::size_t turn_ = 0;                     // which option to look at next
  int n_rounds_alike_ = 0;                   // with drafts that are about as fast as none
  bool is_comparing_ = false;                // this round runs without drafts for comparison
  int n_rounds_off_ = 0;  // consecutive planned rounds without drafts and without news of them
  std::vector<const PassTimes*> levels_;
  StepPlanner step_planner_;
  StepPlanner option_planner_;  // for one text with one option of its drafter
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFTING_DRAFT_PLANNER_H_
