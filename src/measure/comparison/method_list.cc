// SPDX-License-Identifier: Apache-2.0
// Reads lists of methods to compare.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/spec.h"
#include "outrider/compare_methods.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "read methods";
constexpr const char* kForm = "plain or DRAFTER[@SHAPE[@VERIFICATION]]";

// The parts of a method between unescaped @s, without the list's backslashes.
std::vector<std::string> parts_of(std::string_view method) {
  constexpr std::string_view kEscaped = ",@\\";
  std::vector<std::string> parts(1);
  for (std::size_t index = 0; index < method.size(); ++index) {
    const bool is_escape = method[index] == '\\' && index + 1 < method.size() &&
                           kEscaped.find(method[index + 1]) != std::string_view::npos;
    if (is_escape) {
      parts.back() += method[++index];
    } else if (method[index] == '@') {
      parts.emplace_back();
    } else {
      parts.back() += method[index];
    }
  }
  return parts;
}

ComparedMethod read_method(const std::string& text, const ModelOptions& drafter_options) {
  const auto fail = [&](const std::string& got) { throw UsageError(kOperation, text, kForm, got); };
  const std::vector<std::string> parts = parts_of(text);
  constexpr std::size_t kMaxParts = 3;
  if (std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.empty(); })) {
    fail("an empty part");
  }
  if (parts.size() > kMaxParts) fail(fmt::format("{} parts", parts.size()));

  ComparedMethod method{.name = text, .speculation = {}};
  SpeculationOptions& speculation = method.speculation;
  speculation.drafter_options = drafter_options;
  if (parts[0] == "plain" || parts[0] == "none") {
    if (parts.size() > 1) fail("a shape without a drafter");
    method.name = "plain";
    return method;
  }
  speculation.drafter = parts[0];
  if (parts.size() == 1 || parts[1] == "auto") {
    speculation.adaptive = true;
    // Draft depths depend on the clock; with "coupled" a seed gives the same text nevertheless.
    speculation.verify = "coupled";
  } else if (parts[1] != "own") {
    speculation.tree = parts[1];
  }
  if (parts.size() == kMaxParts) speculation.verify = parts[2];
  check_speculation(speculation);
  return method;
}

}  // namespace

std::vector<ComparedMethod> read_methods(std::string_view list,
                                         const ModelOptions& drafter_options) {
  if (list.empty()) throw UsageError(kOperation, "methods", "at least one", "none");
  std::vector<ComparedMethod> methods = {{.name = "plain", .speculation = {}}};
  for (const std::string& text : split_specs(list, ',')) {
    ComparedMethod method = read_method(text, drafter_options);
    const auto same = [&method](const ComparedMethod& other) { return other.name == method.name; };
    const auto known = std::find_if(methods.begin(), methods.end(), same);
    if (known == methods.end()) {
      methods.push_back(std::move(method));
    } else if (known != methods.begin()) {
      throw UsageError(kOperation, text, "each method once", "twice");
    }
  }
  return methods;
}

bool promises_same_text(const ComparedMethod& method, double temperature) {
  const SpeculationOptions& speculation = method.speculation;
  if (speculation.drafter == "none") return true;
  if (speculation.rule != "exact") return false;
  return temperature == 0 || speculation.verify == "coupled";
}

}  // namespace outrider
