// The plan of drafts (step_plan.h) with what it is made from: the costs of passes, and what became
// of earlier drafts.
#ifndef OUTRIDER_ENGINE_DRAFT_PLANNER_H_
#define OUTRIDER_ENGINE_DRAFT_PLANNER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/draft_past.h"
#include "engine/further_level.h"
#include "engine/pass_times.h"
#include "engine/paying_nodes.h"
#include "engine/paying_stop.h"
#include "engine/step_plan.h"
#include "engine/trust_of_text.h"
#include "speculate/decoder.h"

namespace outrider {

// What is kept of a text while it runs. Not thread-safe.
class DraftingText {
 public:
  // stop: the request's own rule; may be null, and outlives the text.
  explicit DraftingText(const StopRule* stop) : stop_(stop) {}
  // What a text takes whose drafts are planned, in the place of its own.
  const StopRule* stop() const { return &stop_; }

 private:
  friend class DraftPlanner;
  // Some twenty rounds are remembered, which is a sentence or two.
  static constexpr double kKeeps = 0.95;

  // By one drafter, or by one of those that it chooses among.
  struct OfOption {
    DraftPast past = DraftPast(kKeeps);
    // Of drafts with DraftJob::recent_only. The texts of some kinds need all of their prompts,
    // those of others nothing but their last words: what others' drafts were says little.
    DraftPast recent_past = DraftPast(kKeeps, /*prior_rounds=*/2);
    bool is_recent = false;      // its next draft is one of these
    int n_rounds_unchanged = 0;  // since that was decided or something learned
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

// What is known of a drafter. Times are those at PassTimes::scale() 1 of the target's passes: a
// machine that gets slower does so for both, also while the drafter is off.
struct KnownOfDrafter {
  struct Drafts {
    DraftPast past = DraftPast(kKeeps);
    DraftPast recent_past = DraftPast(kKeeps);  // with DraftJob::recent_only
    TrustCurve trust;

    // Some hundred rounds, so that a few texts of a kind do not decide for one of another.
    static constexpr double kKeeps = 0.99;
  };
  // What became of drafts differs with the law: likeliest tokens, or drawn ones.
  Drafts greedy;
  Drafts drawn;
  PassTimes levels;            // a level of drafts, by texts
  double seconds_a_token = 0;  // of what it catches up with; 0: not known
};

// Not thread-safe.
class DraftPlanner {
 public:
  // now: a clock, in seconds; by default the steady one.
  explicit DraftPlanner(std::function<double()> now = {});

  // A text of the round. Those that run tokens of prompts are among them.
  struct Text {
    StreamShare* share = nullptr;
    bool adaptive = false;  // its drafts may be planned
    DraftingText* drafting = nullptr;
  };

  void measure(LanguageModel& target);
  // What is known, for a file; takes the place of what is known here.
  const PassTimes& passes() const { return passes_; }
  void set_passes(PassTimes passes) { passes_ = std::move(passes); }
  const KnownOfDrafter* known(const Drafter* drafter) const;
  void set_known(Drafter* drafter, KnownOfDrafter known);
  bool is_measured() const { return !passes_.empty(); }
  // Whether some text drafted by this drafter when texts with it decoded last, and by all of its
  // tokens; true at first.
  bool reads_prompts(const Drafter* drafter) const;
  // Sets how adaptive texts draft; leaves it where nothing was measured.
  void plan(std::span<const Text> texts);
  // A text has ended, with so many new tokens.
  void ended(std::int64_t n_generated);
  // After the round that was planned, before anything else happens to its texts. draft_seconds:
  // what a drafter's drafts took in it (Decoder::draft_seconds).
  void learn(std::span<const Text> texts, const RoundTimes& times,
             const std::function<double(const Drafter*)>& draft_seconds);

 private:
  // Tokens that a drafter runs beside others of a round without its taking longer. This and what
  // follows was chosen by draft_planner_test.cc's simulation.
  static constexpr std::size_t kFewBehind = 8;
  // Rounds that what was foreseen counts for, and the best that is supposed.
  static constexpr double kSupposed = 6;
  static constexpr double kBest = 0.9;

  struct OfDrafter {
    Drafter* drafter = nullptr;
    KnownOfDrafter known;
    FurtherLevel further;
    bool has_guessed_catch_up = false;  // with its first levels in it
    bool pays = true;                   // some text drafted by the last plan
    bool reads_prompts = true;          // and not by its last tokens alone
    double seconds_off = 0;             // of rounds since then, or since the last look
    double look_seconds = 0;            // what a look at it takes, or a trial; 0: not known
    int n_looks = 1;                    // that followed each other without its coming back
    double patience = 1;                // by which looks are rarer: it came back in vain
    int n_rounds_on = 0;                // since it came back
    double n_seen = 0;                  // tokens of the looks that follow each other
    double n_foreseen = 0;              // of them
    struct Priced {
      std::array<int, 3> of_what{};  // rows, texts that draft, drafted tokens before
      double rate = 0;               // tokens a second
      int n_rounds = 0;
      PayingStop::Prices prices{};
    };
    Priced priced;
    const Stream* trial = nullptr;  // the text that tries in this round
  };
  // A text of planned_.
  struct OfRound {
    std::size_t text = 0;      // of the round's
    std::size_t n_behind = 0;  // Drafter::n_behind() before it, or n_behind_recent()
    bool waits = false;        // for its first token, whatever drafts would bring
    bool rates = false;        // its drafts go by what their tokens are worth
    std::size_t option = 0;    // of the text's drafter: that planned_ has
    bool is_recent = false;    // DraftJob::recent_only
    bool chooses = false;      // among several
    // After the round: the drafter whose draft it was, and how deep it could have been.
    int used = -1;
    int limit = 0;
  };
  // What a drafter did in the round.
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
  double mean_length_;  // of the texts that ended
  std::int64_t n_ended_ = 0;
  std::vector<OfDrafter> drafters_;

  // Of the round.
  std::vector<PlannedText> planned_;
  std::vector<PlannedText> planned_before_;  // of the round before
  std::vector<OfRound> of_round_;            // of each of planned_
  int n_prompt_ = 0;                         // rows of prompts
  std::vector<int> depths_;                  // of each of planned_: how deep it drafts
  std::size_t turn_ = 0;                     // of options to be looked at
  int n_rounds_alike_ = 0;                   // with drafts that are about as fast as none
  bool is_comparing_ = false;                // this round is without drafts for once
  int n_rounds_off_ = 0;  // planned in turn without drafts or anything learned of them
  std::vector<const PassTimes*> levels_;
  StepPlanner step_planner_;
  StepPlanner option_planner_;  // of one text with one of its drafter's options
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFT_PLANNER_H_
