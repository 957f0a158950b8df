#include "speculate/drafter_registry.h"

#include <algorithm>
#include <vector>

#include "speculate/drafters/model_drafter.h"

namespace outrider {
namespace {

constexpr DrafterKind kKinds[] = {
    {"model", "model:PATH", true, read_model_drafter},
};

}  // namespace

std::span<const DrafterKind> drafter_kinds() { return kKinds; }

DrafterPlan read_drafter(const Spec& spec) {
  std::vector<std::string_view> names = {"none"};  // what a user may write in a drafter's place
  for (const DrafterKind& kind : kKinds) names.push_back(kind.name);
  spec.require_name(names);
  return std::find_if(std::begin(kKinds), std::end(kKinds),
                      [&](const DrafterKind& kind) { return kind.name == spec.name(); })
      ->read(spec);
}

}  // namespace outrider
