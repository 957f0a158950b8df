// How deep each text drafts in the next pass: as deep as pays by what passes cost and by what was
// accepted lately, down to not at all. A pure function over measurements.
#ifndef OUTRIDER_ENGINE_STEP_PLAN_H_
#define OUTRIDER_ENGINE_STEP_PLAN_H_

#include <span>
#include <vector>

#include "engine/draft_past.h"
#include "engine/pass_times.h"

namespace outrider {

// A text that decodes in the next pass.
struct PlannedText {
  int deepest = 0;     // its draft at most; 0: it drafts nothing
  bool fixed = false;  // it drafts so deep, whatever that costs
  // Its draft ends by itself where it does not pay (paying_stop.h): all of it, or none.
  bool ends_itself = false;
  int drafter = -1;                  // which of the plan's drafters
  const DraftPast* past = nullptr;   // of this text; null for one that drafts nothing
  const DraftPast* prior = nullptr;  // of all texts with its drafter
  // What the drafter has to catch up with before, in seconds, and in how many tokens of the text
  // that is to be won back.
  double catch_up_seconds = 0;
  double horizon = 0;
};

struct DraftPlan {
  std::vector<int> depths;       // of each text
  double tokens_per_second = 0;  // that are expected of all texts together
};

// Writes the plan by which tokens per second are the most: (tokens that the texts are expected to
// get) / (the pass and what the drafters take). levels: of each drafter, what a level of drafts
// takes by the number of texts, at passes.scale() 1. n_prompt: rows of prompts in the same pass,
// whose own cost decides nothing.
void plan_drafts(std::span<const PlannedText> texts, const PassTimes& passes,
                 std::span<const PassTimes* const> levels, int n_prompt, DraftPlan& plan);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_STEP_PLAN_H_
