// SPDX-License-Identifier: Apache-2.0
// What planners have learnt, as a file for later runs of the same model on the same machine, with
// any drafters.
#ifndef OUTRIDER_ENGINE_DRAFTING_DRAFTING_PROFILE_H_
#define OUTRIDER_ENGINE_DRAFTING_DRAFTING_PROFILE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/drafting/draft_planner.h"

namespace outrider {

// The most drafters in a file, the last used ones: more than users try with one model, in about 0.2
// MB.
inline constexpr std::size_t kMaxProfiledDrafters = 32;

struct DraftingProfile {
  PassTimes passes;
  // By spec, the last used first; at most kMaxProfiledDrafters.
  std::vector<std::pair<std::string, KnownOfDrafter>> drafters;
};

// The profile after a run: all of `run`, and the drafters of `before` that the run did not have, as
// many as a file holds. Drafters' times are relative to the target's passes, so those taken over
// are rescaled to the run's.
DraftingProfile merge_profiles(DraftingProfile run, DraftingProfile before);

// Formats the profile as JSON. It contains counts and times, nothing of any text.
std::string to_text(const DraftingProfile& profile);
// Throws Error, naming the text by `name`, if it is no profile, has another version (the first one
// had a file for each drafter), or holds invalid numbers.
DraftingProfile read_drafting_profile(std::string_view text, std::string_view name);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFTING_DRAFTING_PROFILE_H_
