// The drafters there are: what reads each, and what people read about it.
#ifndef OUTRIDER_SPECULATE_DRAFTER_REGISTRY_H_
#define OUTRIDER_SPECULATE_DRAFTER_REGISTRY_H_

#include <span>
#include <string>
#include <string_view>

#include "outrider/spec_description.h"
#include "speculate/drafter_plan.h"

namespace outrider {

// Throws UsageError for parts that cannot be meant; opens no file.
using ReadDrafterOfOthers = DrafterPlan (*)(std::span<const std::string> parts);

struct DrafterKind {
  SpecDescription description;
  bool has_draft_prob = false;  // every drafter of the kind has distributions: for error messages
  // Gets specs that have described keys alone.
  ReadDrafter read = nullptr;
  // Instead of `read`, for drafters made of others: the specs of these, and what joins them.
  ReadDrafterOfOthers read_parts = nullptr;
  char joined_by = ',';
};

// In the order of the documentation.
std::span<const DrafterKind> drafter_kinds();

// Throws UsageError for an unknown name, listing the known ones, for keys that are not described,
// and whatever the kind's own reader throws.
DrafterPlan read_drafter(std::string_view spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTER_REGISTRY_H_
