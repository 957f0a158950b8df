// SPDX-License-Identifier: Apache-2.0
// Selects which part of a composite drafter drafts a text's next round: by a decision before the
// round, and by what the parts find.
#ifndef OUTRIDER_SPECULATE_DRAFT_CHOICE_H_
#define OUTRIDER_SPECULATE_DRAFT_CHOICE_H_

#include <vector>

#include "speculate/draft_worth.h"

namespace outrider {

// For drafters with Drafter::choices(), for one text and round. Not thread-safe.
struct DraftChoice {
  static constexpr int kNone = -1;

  // The part that may run a model for its draft.
  int part = kNone;
  int depth = 0;  // limit of its draft
  // A looked-up draft replaces that part if its worth exceeds its cost by at least this many
  // tokens.
  double floor = 0;
  // One for each part that rates its tokens, null for others.
  std::vector<DraftWorth*> worths;

  // Set by propose(): the part that made the draft.
  int taken = kNone;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFT_CHOICE_H_
