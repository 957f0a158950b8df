// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/error.h"
#include "outrider/generate.h"

namespace outrider {
namespace {

std::vector<std::string> split_models(std::string_view models) {
  std::vector<std::string> paths(1);
  for (std::size_t index = 0; index < models.size(); ++index) {
    if (models[index] == '>') {
      paths.emplace_back();
      continue;
    }
    if (models[index] == '\\' && index + 1 < models.size()) ++index;
    paths.back() += models[index];
  }
  return paths;
}

// As a value within one of a drafter's parts, which are joined by plus signs.
std::string as_part(std::string_view path) {
  std::string escaped;
  for (const char c : path) {
    if (c == '\\' || c == ',' || c == '=' || c == '+') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

Cascade read_cascade(std::string_view spec, const std::string& rule) {
  constexpr std::string_view kPrefix = "spec:";
  constexpr const char* kForm = "spec:A>B>C, three models from the smallest to the largest";
  if (!spec.starts_with(kPrefix)) {
    throw UsageError("read cascade", spec, kForm,
                     spec.substr(0, std::min(spec.find(':'), spec.size())));
  }
  const std::vector<std::string> paths = split_models(spec.substr(kPrefix.size()));
  if (paths.size() != 3) {
    throw UsageError("read cascade", spec, kForm, fmt::format("{}", paths.size()));
  }
  for (const std::string& path : paths) {
    if (path.empty()) throw UsageError("read cascade", spec, kForm, "an empty path");
  }
  std::string escaped_rule;
  for (const char c : rule) escaped_rule += c == '+' ? std::string("\\+") : std::string(1, c);
  return {.model = paths[2],
          .drafter = fmt::format("cascade:{}+model:{}+model:{}", escaped_rule, as_part(paths[1]),
                                 as_part(paths[0]))};
}

}  // namespace outrider
