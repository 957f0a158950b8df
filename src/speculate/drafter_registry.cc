#include "speculate/drafter_registry.h"

#include <algorithm>
#include <string>
#include <vector>

#include "speculate/drafters/eagle_drafter.h"
#include "speculate/drafters/first_drafter.h"
#include "speculate/drafters/medusa_drafter.h"
#include "speculate/drafters/merge_drafter.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/drafters/mtp_drafter.h"
#include "speculate/drafters/ngram_drafter.h"
#include "speculate/drafters/reference_drafter.h"
#include "speculate/drafters/retrieval_drafter.h"
#include "speculate/drafters/staged_drafter.h"
#include "speculate/drafters/suffix_drafter.h"

namespace outrider {
namespace {

constexpr DrafterKind kKinds[] = {
    {"model", "model:PATH", true, read_model_drafter},
    {"eagle", "eagle:PATH", true, read_eagle_drafter},
    {"medusa", "medusa:PATH", true, read_medusa_drafter},
    {"mtp", "mtp", true, read_mtp_drafter},
    {"ngram", "ngram:min=,max=,length=", false, read_ngram_drafter},
    {"reference", "reference:file=F", false, read_reference_drafter},
    {"suffix", "suffix:length=,total=", false, read_suffix_drafter},
    {"retrieval", "retrieval:path=FILE", false, read_retrieval_drafter},
    {"first", "first:A,B,...", false, nullptr, read_first_drafter, ','},
    {"merge", "merge:A+B+...", false, nullptr, read_merge_drafter, '+'},
    {"staged", "staged:model:PATH+B", true, nullptr, read_staged_drafter, '+'},
};

}  // namespace

std::span<const DrafterKind> drafter_kinds() { return kKinds; }

DrafterPlan read_drafter(std::string_view spec) {
  const std::string_view name = spec.substr(0, spec.find(':'));
  const auto* const kind =
      std::find_if(std::begin(kKinds), std::end(kKinds),
                   [&](const DrafterKind& known) { return known.name == name; });
  if (kind == std::end(kKinds)) {
    std::vector<std::string_view> names = {"none"};  // what a user may write in a drafter's place
    for (const DrafterKind& known : kKinds) names.push_back(known.name);
    Spec::parse("drafter", name).require_name(names);
  }
  if (kind->read != nullptr) return kind->read(Spec::parse("drafter", spec));
  return kind->read_parts(
      split_specs(spec.substr(std::min(spec.size(), name.size() + 1)), kind->joined_by));
}

}  // namespace outrider
