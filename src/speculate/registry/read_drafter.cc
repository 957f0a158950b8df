// SPDX-License-Identifier: Apache-2.0
// Reads a spec into the plan of a drafter, whatever its kind.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/spec.h"
#include "outrider/error.h"
#include "speculate/registry/drafter_registry.h"

namespace outrider {

DrafterPlan read_drafter(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  if (name == "own") {
    throw UsageError("read drafter", text,
                     "a program that brings the drafter (SpeculationOptions::own_drafter)",
                     "a spec alone");
  }
  const std::span<const DrafterKind> kinds = drafter_kinds();
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const DrafterKind& known) {
    return known.description.name == name;
  });
  if (kind == kinds.end()) {
    std::vector<std::string_view> names = {"none"};  // what a user may write instead of a drafter
    names.reserve(kinds.size() + 1);
    for (const DrafterKind& known : kinds) names.push_back(known.description.name);
    Spec::parse("drafter", name).require_name(names);
    throw UsageError("read drafter", std::string(text), "a drafter", "none as a part of another");
  }
  if (kind->read != nullptr) {
    const Spec spec = Spec::parse("drafter", text);
    spec.require_described_keys(kind->description.keys);
    return kind->read(spec);
  }
  std::vector<std::string> parts;  // none given: the kind decides whether that is allowed
  if (name.size() < text.size()) {
    parts = split_specs(text.substr(name.size() + 1), kind->joined_by);
    if (parts.empty()) parts.emplace_back();
  }
  if (std::find(parts.begin(), parts.end(), "") != parts.end()) {
    throw UsageError("read drafter", text, "a drafter as every part", "an empty one");
  }
  return kind->read_parts(parts);
}

}  // namespace outrider
