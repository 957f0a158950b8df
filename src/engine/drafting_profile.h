// What planners have learnt, as the text of a file: for later runs of the same model on the same
// machine, with whatever drafters.
#ifndef OUTRIDER_ENGINE_DRAFTING_PROFILE_H_
#define OUTRIDER_ENGINE_DRAFTING_PROFILE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/draft_planner.h"

namespace outrider {

// A file holds as many, those used last: more than anybody tries of one model, and some 0.2 MB.
inline constexpr std::size_t kMostProfiledDrafters = 32;

struct DraftingProfile {
  PassTimes passes;
  // By their specs, the last one used first; kMostProfiledDrafters at most.
  std::vector<std::pair<std::string, KnownOfDrafter>> drafters;
};

// What is known behind a run: all of `run`, and behind its drafters those that `before` has and the
// run had not, as many as a file holds. A drafter's times go by those of the target's passes: those
// taken over are put at the scale of the run's.
DraftingProfile merge_profiles(DraftingProfile run, DraftingProfile before);

// JSON. Texts leave nothing in it but counts.
std::string to_text(const DraftingProfile& profile);
// Throws Error, with the `name` that the text goes by, for what is no profile, of another version
// (the first one had a file for each drafter), or has numbers that cannot be meant.
DraftingProfile read_drafting_profile(std::string_view text, std::string_view name);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFTING_PROFILE_H_
