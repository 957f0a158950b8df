// The drafters there are: a line each.
#ifndef OUTRIDER_SPECULATE_DRAFTER_REGISTRY_H_
#define OUTRIDER_SPECULATE_DRAFTER_REGISTRY_H_

#include <span>
#include <string_view>

#include "speculate/drafter_plan.h"

namespace outrider {

struct DrafterKind {
  std::string_view name;
  std::string_view usage;  // its spec, for people to read
  bool has_draft_prob;     // every drafter of the kind has distributions: what errors recommend
  ReadDrafter read;
};

// In the order of the documentation.
std::span<const DrafterKind> drafter_kinds();

// Throws UsageError for an unknown name, listing the known ones, and whatever the kind's own reader
// throws.
DrafterPlan read_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTER_REGISTRY_H_
