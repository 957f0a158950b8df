// SPDX-License-Identifier: Apache-2.0
// The registry of drafters: their readers and descriptions.
#ifndef OUTRIDER_SPECULATE_REGISTRY_DRAFTER_REGISTRY_H_
#define OUTRIDER_SPECULATE_REGISTRY_DRAFTER_REGISTRY_H_

#include <span>
#include <string>
#include <string_view>

#include "outrider/spec_description.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Throws UsageError for invalid parts; opens no file.
using ReadDrafterOfOthers = DrafterPlan (*)(std::span<const std::string> parts);

struct DrafterKind {
  SpecDescription description;
  bool has_draft_prob = false;  // every drafter of the kind has distributions: for error messages
  // Receives specs with described keys only.
  ReadDrafter read = nullptr;
  // Instead of `read`, for drafters made of others: receives their specs; joined_by separates
  // these.
  ReadDrafterOfOthers read_parts = nullptr;
  char joined_by = ',';
};

// In the order of the documentation.
std::span<const DrafterKind> drafter_kinds();

// Throws UsageError for an unknown name (with the known ones) and for unknown keys, and whatever
// the kind's reader throws.
DrafterPlan read_drafter(std::string_view spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_REGISTRY_DRAFTER_REGISTRY_H_
