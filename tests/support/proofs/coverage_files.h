// SPDX-License-Identifier: Apache-2.0
// The two files with the contract suite's findings: tests/golden/coverage.txt
// (coverage_findings.h), and docs/coverage.md (coverage_page.h), which is generated from it.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_COVERAGE_FILES_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_COVERAGE_FILES_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "tests/support/proofs/coverage_findings.h"
#include "tests/support/proofs/coverage_page.h"
#include "tests/support/proofs/drafter_cases.h"

namespace outrider::test {

inline constexpr const char* kWriteCoverage =
    "OUTRIDER_WRITE_COVERAGE=1 engine_test --gtest_filter='*Coverage*' writes it anew";

inline bool writing_coverage() { return std::getenv("OUTRIDER_WRITE_COVERAGE") != nullptr; }

inline std::filesystem::path findings_file() {
  return std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" / "coverage.txt";
}

inline std::filesystem::path page_file() {
  return std::filesystem::path(OUTRIDER_SOURCE_DIR) / "docs" / "coverage.md";
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string committed_findings() { return text_of(findings_file()); }

inline void write_page() {
  const CoveragePage page(read_findings(committed_findings()));
  std::ofstream(page_file()) << page.text();
}

// Replaces the drafter's section, keeps the others, in the order of drafter_cases.h; and writes the
// page.
inline void write_coverage(std::string_view drafter, const std::string& section) {
  const std::string before = committed_findings();
  std::string text = kFindingsHead;
  for (const DrafterCase& other : kDrafterCases) {
    text += other.name == drafter ? section : section_of(before, other.name);
  }
  std::ofstream(findings_file()) << text;
  write_page();
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_COVERAGE_FILES_H_
