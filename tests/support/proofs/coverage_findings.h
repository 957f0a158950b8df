// SPDX-License-Identifier: Apache-2.0
// The contract suite's finding for every combination, in the format of tests/golden/coverage.txt.
// The file begins with a comment. A section per drafter follows: "## NAME", the drafter's spec
// (drafter_cases.h), and a line per combination,
//   TREE VERIFICATION RULE: RESULT
// The result is kPassed, the text of the error with which the combination ends, or "as TREE
// VERIFICATION RULE" if an earlier line of the section has the same text. A line depends on no
// number and on no list of rules, so that another rule or tree adds lines and changes none.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_COVERAGE_FINDINGS_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_COVERAGE_FINDINGS_H_

#include <fmt/format.h>

#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/error.h"

namespace outrider::test {

inline constexpr const char* kPassed = "pass";

struct Finding {
  std::string tree = {};
  std::string verify = {};
  std::string rule = {};
  std::string result = {};

  std::string combination() const { return fmt::format("{} {} {}", tree, verify, rule); }
  bool operator==(const Finding&) const = default;
};

struct DrafterFindings {
  std::string name = {};
  std::string spec = {};
  std::vector<Finding> findings = {};
};

inline constexpr const char* kFindingsHead =
    R"(# What the contract suite (src/engine/proofs/drafter_exactness_test.cc) finds: the golden file of its tests.
# For readers there is docs/coverage.md, which is made from this file.
# OUTRIDER_WRITE_COVERAGE=1 engine_test --gtest_filter='*Coverage*' writes both.
# A line: tree, verification, rule: "pass", an error's text, or "as" an earlier line of the drafter.
)";

// The drafter's section.
inline std::string write_findings(const DrafterFindings& drafter) {
  std::string text = fmt::format("\n## {}\n{}\n", drafter.name, drafter.spec);
  std::map<std::string, std::string> first;  // by error text: the first combination with it
  for (const Finding& finding : drafter.findings) {
    const auto [at, is_first] = first.emplace(finding.result, finding.combination());
    const bool in_full = is_first || finding.result == kPassed;
    text += fmt::format("{}: {}\n", finding.combination(),
                        in_full ? finding.result : "as " + at->second);
  }
  return text;
}

// The section of a drafter, from its heading to the next one; empty if there is none.
inline std::string section_of(const std::string& text, std::string_view drafter) {
  const std::size_t begin = text.find(fmt::format("\n## {}\n", drafter));
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find("\n## ", begin + 1) - begin);
}

// All sections, every result in full. Throws an Error that names a line of any other form.
inline std::vector<DrafterFindings> read_findings(const std::string& text) {
  std::vector<DrafterFindings> drafters;
  std::map<std::string, std::string> results;  // by combination, within the section
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) {
      drafters.emplace_back().name = line.substr(3);
      std::getline(lines, drafters.back().spec);
      results.clear();
      continue;
    }
    if (drafters.empty() || line.empty()) continue;
    Finding finding;
    const std::size_t colon = line.find(": ");
    std::istringstream(line.substr(0, colon)) >> finding.tree >> finding.verify >> finding.rule;
    if (colon == std::string::npos || line.substr(0, colon) != finding.combination()) {
      throw Error("read findings", "coverage.txt", "TREE VERIFICATION RULE: RESULT", line);
    }
    finding.result = line.substr(colon + 2);
    if (finding.result.starts_with("as ")) {
      const auto earlier = results.find(finding.result.substr(3));
      if (earlier == results.end()) {
        throw Error("read findings", "coverage.txt", "as an earlier line", line);
      }
      finding.result = earlier->second;
    }
    results[finding.combination()] = finding.result;
    drafters.back().findings.push_back(finding);
  }
  return drafters;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_COVERAGE_FINDINGS_H_
