// The plan of drafts (step_plan.h) with what it is made from: the costs of passes, and what became
// of earlier drafts.
#ifndef OUTRIDER_ENGINE_DRAFT_PLANNER_H_
#define OUTRIDER_ENGINE_DRAFT_PLANNER_H_

#include <span>
#include <vector>

#include "engine/pass_times.h"
#include "engine/step_plan.h"
#include "speculate/decoder.h"

namespace outrider {

// Not thread-safe.
class DraftPlanner {
 public:
  // A text of the round. Those that run tokens of prompts are among them.
  struct Text {
    StreamShare* share = nullptr;
    bool adaptive = false;      // its drafts may be planned
    DraftPast* past = nullptr;  // of its own
  };
  static DraftPast past_of_text();

  void measure(LanguageModel& target);
  // Whether some text drafted by this drafter when texts with it decoded last; true at first.
  bool pays(const Drafter* drafter) const;
  // Sets StreamShare::draft_depth of adaptive texts; leaves it where nothing was measured.
  void plan(std::span<const Text> texts);
  // After the round that was planned, before anything else happens to its texts.
  void learn(std::span<const Text> texts, const Decoder& decoder, const RoundTimes& times);

 private:
  struct DrafterPast {
    const Drafter* drafter = nullptr;
    DraftPast past;
    bool pays = true;       // some text drafted by the last plan
    int until_trial = 0;    // rounds without a draft before one text tries again
    bool is_trial = false;  // in this round one does
    int deepest = 0;        // of the round's drafts
    int n_tries = 0;        // texts that might draft in it
    int n_texts = 0;        // that did
    int n_accepted = 0;     // tokens
  };
  std::size_t index_of(const Drafter* drafter);
  void try_again(std::span<const Text> texts);

  PassTimes passes_;
  std::vector<DrafterPast> drafters_;
  std::vector<PassTimes> levels_;  // of each of drafters_: a level of drafts, by texts

  // Of the round.
  std::vector<PlannedText> planned_;
  std::vector<std::size_t> drafting_;  // of each of planned_: which text
  std::vector<int> depths_;
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFT_PLANNER_H_
