// Which of a drafter's parts drafts a text's next round: decided from outside before the round, and
// by what the parts find.
#ifndef OUTRIDER_SPECULATE_DRAFT_CHOICE_H_
#define OUTRIDER_SPECULATE_DRAFT_CHOICE_H_

#include <vector>

#include "speculate/draft_worth.h"

namespace outrider {

// For drafters that have Drafter::choices(), of one text and round. Not thread-safe.
struct DraftChoice {
  static constexpr int kNone = -1;

  // The part that may run a model for its draft.
  int part = kNone;
  int depth = 0;  // of its draft at most
  // By how many tokens more than it costs a draft that was looked up has to be worth for it to take
  // that part's place.
  double floor = 0;
  // One for each part that rates its tokens, null for others.
  std::vector<DraftWorth*> worths;

  // Set by propose(): the part whose draft it is.
  int taken = kNone;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFT_CHOICE_H_
