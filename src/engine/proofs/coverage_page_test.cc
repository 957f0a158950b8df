// SPDX-License-Identifier: Apache-2.0
// The contract suite's findings as files: docs/coverage.md is generated from
// tests/golden/coverage.txt by coverage_page.h. drafter_exactness_test.cc compares the findings
// themselves, one test per drafter.
#include "tests/support/proofs/coverage_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "outrider/error.h"
#include "tests/support/proofs/coverage_files.h"
#include "tests/support/proofs/coverage_findings.h"
#include "tests/support/proofs/drafter_cases.h"

namespace outrider {
namespace {

using test::committed_findings;
using test::CoveragePage;
using test::DrafterFindings;
using test::kFindingsHead;
using test::kRefusalKinds;
using test::read_findings;
using test::write_findings;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// --- The committed files ---------------------------------------------------------------------

TEST(CoveragePage, IsMadeFromTheFindings) {
  if (test::writing_coverage()) {
    test::write_page();
    return;
  }
  EXPECT_EQ(test::text_of(test::page_file()),
            CoveragePage(read_findings(committed_findings())).text())
      << test::kWriteCoverage;
}

TEST(CoveragePage, FindingsAreOfTheSuitesDraftersInOrderAndNoOthers) {
  if (test::writing_coverage()) GTEST_SKIP() << "the findings are being written";
  const std::string text = committed_findings();
  std::string expected = kFindingsHead;
  std::vector<std::string> names;
  for (const test::DrafterCase& drafter_case : test::kDrafterCases) {
    names.emplace_back(drafter_case.name);
    expected += test::section_of(text, drafter_case.name);
  }
  EXPECT_EQ(text, expected) << test::kWriteCoverage;
  std::vector<std::string> read;
  for (const DrafterFindings& drafter : read_findings(text)) read.push_back(drafter.name);
  EXPECT_EQ(read, names);
}

TEST(CoveragePage, ExplainsEveryKindOfRefusalThatThereIsAndNoOther) {
  if (test::writing_coverage()) GTEST_SKIP() << "the findings are being written";
  std::vector<std::string> explained;
  for (const auto& kind : kRefusalKinds) explained.emplace_back(kind.text);
  EXPECT_EQ(CoveragePage(read_findings(committed_findings())).kinds(), explained)
      << "kRefusalKinds (coverage_page.h) has an entry for each";
}

// --- How they are made -----------------------------------------------------------------------

constexpr const char* kChain = "[judge drafts] block: expected a chain, got the tree widths:2,1";

// Two drafters that differ in an error's details, and one that is proven in every combination.
std::vector<DrafterFindings> sample() {
  const auto refused_by = [](const std::string& drafter) {
    return "[judge drafts] bild: expected a chain, got the drafter " + drafter;
  };
  return {{"one",
           "one:{draft}",
           {{"own", "exact", "exact", "pass"},
            {"own", "exact", "bild", refused_by("one")},
            {"own", "block", "exact", kChain},
            {"own", "block", "bild", kChain}}},
          {"all",
           "all",
           {{"own", "exact", "exact", "pass"},
            {"own", "exact", "bild", "pass"},
            {"own", "block", "exact", "pass"},
            {"own", "block", "bild", "pass"}}},
          {"two",
           "two:k=2",
           {{"own", "exact", "exact", "pass"},
            {"own", "exact", "bild", refused_by("two")},
            {"own", "block", "exact", kChain},
            {"own", "block", "bild", kChain}}}};
}

TEST(CoveragePage, FindingsStandALineACombinationWithEachTextOnce) {
  EXPECT_EQ(write_findings(sample()[0]),
            "\n## one\none:{draft}\n"
            "own exact exact: pass\n"
            "own exact bild: [judge drafts] bild: expected a chain, got the drafter one\n"
            "own block exact: [judge drafts] block: expected a chain, got the tree widths:2,1\n"
            "own block bild: as own block exact\n");
}

TEST(CoveragePage, FindingsAreReadAsTheyWereWritten) {
  std::string text = kFindingsHead;
  for (const DrafterFindings& drafter : sample()) text += write_findings(drafter);
  const std::vector<DrafterFindings> read = read_findings(text);
  ASSERT_THAT(read, SizeIs(3));
  for (std::size_t index = 0; index < read.size(); ++index) {
    EXPECT_EQ(read[index].name, sample()[index].name);
    EXPECT_EQ(read[index].spec, sample()[index].spec);
    EXPECT_EQ(read[index].findings, sample()[index].findings);
  }
  EXPECT_EQ(test::section_of(text, "two"), write_findings(sample()[2]));
  EXPECT_EQ(test::section_of(text, "tw"), "");
}

TEST(CoveragePage, LinesThatAreNoFindingsAreErrors) {
  EXPECT_THROW(read_findings("## one\none\nown exact: pass\n"), Error);
  EXPECT_THROW(read_findings("## one\none\nown exact exact pass\n"), Error);
  EXPECT_THROW(read_findings("## one\none\nown exact exact: as own exact bild\n"), Error);
  // "as" does not refer to another drafter's section.
  EXPECT_THROW(read_findings("## one\none\nown exact bild: no\n"
                             "## two\ntwo\nown exact exact: as own exact bild\n"),
               Error);
}

TEST(CoveragePage, DraftersOfEqualFindingsAreOneGroup) {
  const std::string page = CoveragePage(sample()).text();
  EXPECT_THAT(page, HasSubstr("| one | `one:{draft}` | A |\n"
                              "| all | `all` | B |\n"
                              "| two | `two:k=2` | A |\n"));
  EXPECT_THAT(page, HasSubstr("\n| group | verification | `own` |\n|---|---|---|\n"
                              "| A | `exact` | `bild` (2) |\n"
                              "| A | `block` | all (1) |\n"
                              "| B | `exact`, `block` | none |\n\n"));
}

TEST(CoveragePage, OneCombinationMakesAGroupOfItsOwn) {
  std::vector<DrafterFindings> drafters = sample();
  drafters[2].findings[3].result = "pass";
  const std::string page = CoveragePage(drafters).text();
  EXPECT_THAT(page, AllOf(HasSubstr("| two | `two:k=2` | C |\n"),
                          HasSubstr("| C | `block` | `exact` (1) |\n")));
}

TEST(CoveragePage, MostRulesAreNamedByTheOthers) {
  const std::vector<DrafterFindings> drafters = {{"one",
                                                  "one",
                                                  {{"own", "exact", "exact", "pass"},
                                                   {"own", "exact", "chow", kChain},
                                                   {"own", "exact", "diff", kChain}}}};
  EXPECT_THAT(CoveragePage(drafters).text(), HasSubstr("| A | `exact` | all but `exact` (1) |\n"));
}

TEST(CoveragePage, TreesOfEqualFindingsShareAColumn) {
  const std::vector<DrafterFindings> drafters = {{"one",
                                                  "one",
                                                  {{"own", "block", "exact", kChain},
                                                   {"chain", "block", "exact", "pass"},
                                                   {"best", "block", "exact", kChain}}}};
  EXPECT_THAT(CoveragePage(drafters).text(),
              HasSubstr("| group | verification | `own`, `best` | `chain` |\n|---|---|---|---|\n"
                        "| A | `block` | all (1) | none |\n"));
}

TEST(CoveragePage, RefusalsOfNoKnownKindAndFailuresAreShownAsSuch) {
  std::vector<DrafterFindings> drafters = sample();
  drafters[1].findings[0].result = "FAIL";
  drafters[1].findings[1].result = "[use tree] own: expected another, got this";
  const CoveragePage page(drafters);
  EXPECT_THAT(page.kinds(), SizeIs(4));
  EXPECT_THAT(page.text(), AllOf(HasSubstr("\n3. `FAIL`: (Not explained.)\n"),
                                 HasSubstr("\n4. `[use tree] own: expected another, got this`: "),
                                 HasSubstr("| B | `exact` | all (3, 4) |\n")));
}

TEST(CoveragePage, KindsAreToldApartByAllOfTheirWords) {
  constexpr const char* kKind = "[a] {x}: expected b, got {y}";
  EXPECT_TRUE(test::is_of_kind("[a] this: expected b, got that one", kKind));
  EXPECT_FALSE(test::is_of_kind("[a] this: expected b, got ", kKind));
  EXPECT_FALSE(test::is_of_kind("[a] : expected b, got that", kKind));
  EXPECT_FALSE(test::is_of_kind("[a] this: expected c, got that", kKind));
  EXPECT_FALSE(test::is_of_kind("[b] this: expected b, got that", kKind));
  EXPECT_FALSE(test::is_of_kind("[a] this", "[a]"));
  EXPECT_FALSE(test::is_of_kind("[a] this (c) or", "[a] {x} (c)"));
}

}  // namespace
}  // namespace outrider
