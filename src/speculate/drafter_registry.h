// The drafters there are: a line each.
#ifndef OUTRIDER_SPECULATE_DRAFTER_REGISTRY_H_
#define OUTRIDER_SPECULATE_DRAFTER_REGISTRY_H_

#include <span>
#include <string>
#include <string_view>

#include "speculate/drafter_plan.h"

namespace outrider {

// Throws UsageError for parts that cannot be meant; opens no file.
using ReadDrafterOfOthers = DrafterPlan (*)(std::span<const std::string> parts);

struct DrafterKind {
  std::string_view name;
  std::string_view usage;    // its spec, for people to read
  std::string_view summary;  // what it is, likewise
  bool has_draft_prob;       // every drafter of the kind has distributions: what errors recommend
  ReadDrafter read;
  // Instead of `read`, for drafters made of others: the specs of these, and what joins them.
  ReadDrafterOfOthers read_parts = nullptr;
  char joined_by = ',';
};

// In the order of the documentation.
std::span<const DrafterKind> drafter_kinds();

// Throws UsageError for an unknown name, listing the known ones, and whatever the kind's own reader
// throws.
DrafterPlan read_drafter(std::string_view spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTER_REGISTRY_H_
