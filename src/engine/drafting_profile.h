// What a planner has learnt, as the text of a file: for later runs of the same model on the same
// machine.
#ifndef OUTRIDER_ENGINE_DRAFTING_PROFILE_H_
#define OUTRIDER_ENGINE_DRAFTING_PROFILE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/draft_planner.h"

namespace outrider {

struct DraftingProfile {
  PassTimes passes;
  std::vector<std::pair<std::string, KnownOfDrafter>> drafters;  // by their specs
};

// JSON. Texts leave nothing in it but counts.
std::string to_text(const DraftingProfile& profile);
// Throws Error, with the `name` that the text goes by, for what is no profile, of another version,
// or has numbers that cannot be meant.
DraftingProfile read_drafting_profile(std::string_view text, std::string_view name);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFTING_PROFILE_H_
