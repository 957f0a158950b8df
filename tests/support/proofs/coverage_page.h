// SPDX-License-Identifier: Apache-2.0
// docs/coverage.md, generated from the contract suite's findings (coverage_findings.h): drafters
// with the same findings are one group, and each kind of refusal is explained once. Pure functions.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_COVERAGE_PAGE_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_COVERAGE_PAGE_H_

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/proofs/coverage_findings.h"

namespace outrider::test {

// A kind of refusal. Parts that differ from one error to another are in braces.
struct RefusalKind {
  const char* text;
  const char* meaning;
};

inline constexpr RefusalKind kRefusalKinds[] = {
    {"[use rule] {rule}: expected a drafter that has distributions ({drafters}), got the drafter "
     "{drafter}",
     "The rule compares the target's distribution with the drafter's, and this drafter proposes "
     "tokens without one."},
    {"[read verify] {verification}: expected exact with the rule {rule}, got {verification}",
     "`typical`, `bild` and `fly` judge drafts in ways of their own, so no other verification can "
     "be chosen with them."},
    {"[judge drafts] {judge}: expected a chain, got the tree {tree}",
     "The verification `block` and the rule `bild` judge a single path, and the tree that was "
     "asked for has branches."},
    {"[judge drafts] {judge}: expected a chain, got the drafter {drafter}",
     "The same where no tree was asked for: the drafter's own has branches. `--tree chain` asks "
     "for a single path."},
    {"[judge drafts] {rule}: expected drafts of {n} tokens or more (--tree) or a shorter window=, "
     "got {m} of the drafter {drafter}",
     "`fly` lets a refused token stand if the drafted tokens behind it agree, and what this "
     "drafter "
     "drafts without a tree ends before them."},
};

// Whether the text is of the kind: equal except for the parts in braces.
inline bool is_of_kind(std::string_view text, std::string_view kind) {
  const std::size_t open = kind.find('{');
  if (open == std::string_view::npos) return text == kind;
  if (text.substr(0, open) != kind.substr(0, open)) return false;
  const std::string_view rest = kind.substr(kind.find('}') + 1);
  for (std::size_t end = open + 1; end <= text.size(); ++end) {
    if (is_of_kind(text.substr(end), rest)) return true;
  }
  return false;
}

// The kind of a result: kPassed, its kind's text, or the result itself if it is of no kind.
inline std::string kind_of(const std::string& result) {
  if (result == kPassed) return result;
  for (const RefusalKind& kind : kRefusalKinds) {
    if (is_of_kind(result, kind.text)) return kind.text;
  }
  return result;
}

// Drafters whose findings are equal except for the parts that differ within a kind.
struct CoverageGroup {
  std::string name;
  std::vector<Finding> findings;  // a kind for each result
};

class CoveragePage {
 public:
  explicit CoveragePage(std::vector<DrafterFindings> drafters) : drafters_(std::move(drafters)) {
    for (const RefusalKind& kind : kRefusalKinds) kinds_.emplace_back(kind.text);
    std::set<std::string> found;
    for (const DrafterFindings& drafter : drafters_) {
      std::vector<Finding> findings = drafter.findings;
      for (Finding& finding : findings) {
        finding.result = kind_of(finding.result);
        if (finding.result != kPassed) add_once(kinds_, finding.result);
        found.insert(finding.result);
        add_once(trees_, finding.tree);
        add_once(verifications_, finding.verify);
        add_once(rules_, finding.rule);
      }
      const auto same = std::find_if(groups_.begin(), groups_.end(),
                                     [&](const auto& group) { return group.findings == findings; });
      group_of_.push_back(static_cast<std::size_t>(same - groups_.begin()));
      if (same == groups_.end()) groups_.push_back({next_name(), std::move(findings)});
    }
    std::erase_if(kinds_, [&](const std::string& kind) { return !found.contains(kind); });
  }

  // The kinds of refusal that occur, those without an explanation last.
  const std::vector<std::string>& kinds() const { return kinds_; }

  std::string text() const { return introduction() + drafters_table() + matrices() + refusals(); }

 private:
  static void add_once(std::vector<std::string>& list, const std::string& item) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  }

  static std::string quoted(const std::vector<std::string>& names) {
    return names.empty() ? "" : fmt::format("`{}`", fmt::join(names, "`, `"));
  }

  // A, B, ... Z; then numbers, which an incomplete page may need.
  std::string next_name() const {
    constexpr std::size_t kLetters = 26;
    const std::size_t index = groups_.size();
    if (index >= kLetters) return fmt::format("{}", index + 1);
    return std::string(1, static_cast<char>('A' + index));
  }

  // The refusals of a cell: rules, and the numbers of the reasons.
  std::string cell(const CoverageGroup& group, const std::string& tree,
                   const std::string& verification) const {
    std::vector<std::string> refused;
    std::vector<std::string> passed;
    std::set<std::ptrdiff_t> reasons;
    for (const Finding& finding : group.findings) {
      if (finding.tree != tree || finding.verify != verification) continue;
      (finding.result == kPassed ? passed : refused).push_back(finding.rule);
      if (finding.result == kPassed) continue;
      reasons.insert(std::find(kinds_.begin(), kinds_.end(), finding.result) - kinds_.begin() + 1);
    }
    if (refused.empty()) return passed.empty() ? "not tried" : "none";
    std::string rules = quoted(refused);
    if (refused.size() > passed.size()) {
      rules = passed.empty() ? "all" : "all but " + quoted(passed);
    }
    return fmt::format("{} ({})", rules, fmt::join(reasons, ", "));
  }

  // The cells of all groups and verifications under one tree.
  std::vector<std::string> column(const std::string& tree) const {
    std::vector<std::string> cells;
    for (const CoverageGroup& group : groups_) {
      for (const std::string& verification : verifications_) {
        cells.push_back(cell(group, tree, verification));
      }
    }
    return cells;
  }

  // Trees whose columns are equal share one.
  std::vector<std::vector<std::string>> columns() const {
    std::vector<std::vector<std::string>> columns;
    for (const std::string& tree : trees_) {
      const auto same = std::find_if(columns.begin(), columns.end(), [&](const auto& trees) {
        return column(trees.front()) == column(tree);
      });
      if (same == columns.end()) {
        columns.push_back({tree});
      } else {
        same->push_back(tree);
      }
    }
    return columns;
  }

  std::string introduction() const {
    return fmt::format(R"(# What works with what

Every combination of a drafter, a tree, a verification and a rule is either proven or refused. This page says which, and why. The trees are a small one of every kind.

**Proven** means: drafter, decode loop and verification run on a small target, and every outcome of every random draw is walked, for texts of three tokens. This is done with and without penalties, and for greedy decoding; rules for temperature 0 are walked at that alone. Each combination has four random targets or prompts: an ordinary run walks one of the four, a nightly run all. What is emitted must follow the rule's own distribution to 1e-12, with the statistics that go with it. Under the rule `exact` that distribution is plain sampling's. The rules `typical`, `bild` and `fly` have no distribution of their own. There all outcomes are walked, and every draft must keep to its limits.

**Refused** means: the combination ends with an error before anything is loaded.

The contract suite (`src/engine/proofs/drafter_exactness_test.cc`) walks all combinations. `tests/golden/coverage.txt` keeps what it finds of each, with the exact text of every error, and this page is made from that file. Tests compare both; `OUTRIDER_WRITE_COVERAGE=1 engine_test --gtest_filter='*Coverage*'` writes both anew. The drafter `grammar` has a proof of its own (`src/engine/proofs/grammar_exactness_test.cc`).

The rules, each at parameters at which it does something: {}.
)",
                       quoted(rules_));
  }

  std::string drafters_table() const {
    std::string text = R"(
## Drafters

Drafters of which the same is found are one group. `{draft}` and `{other}` are small models, `{foreign}` is one of another vocabulary, `{text}` a text file, `{store}` a datastore; all else in braces is a head on the target.

| test | drafter | group |
|---|---|---|
)";
    for (std::size_t index = 0; index < drafters_.size(); ++index) {
      text += fmt::format("| {} | `{}` | {} |\n", drafters_[index].name, drafters_[index].spec,
                          groups_[group_of_[index]].name);
    }
    return text;
  }

  std::string matrices() const {
    const std::vector<std::vector<std::string>> all_columns = columns();
    std::string text = R"(
## What is refused

The rules that are refused, by group, verification and tree; all others are proven. Numbers are those of the [reasons](#reasons). `own` is what the drafter drafts where no `--tree` is given.

| group | verification |)";
    for (const auto& trees : all_columns) text += fmt::format(" {} |", quoted(trees));
    text += "\n|---|---|";
    for (std::size_t n = 0; n < all_columns.size(); ++n) text += "---|";
    text += "\n";
    for (const CoverageGroup& group : groups_) {
      std::vector<std::pair<std::string, std::vector<std::string>>> rows;  // cells, verifications
      for (const std::string& verification : verifications_) {
        std::string cells;
        for (const auto& trees : all_columns) {
          cells += fmt::format(" {} |", cell(group, trees.front(), verification));
        }
        const auto same = std::find_if(rows.begin(), rows.end(),
                                       [&](const auto& row) { return row.first == cells; });
        if (same == rows.end()) {
          rows.push_back({cells, {verification}});
        } else {
          same->second.push_back(verification);
        }
      }
      for (const auto& [cells, verifications] : rows) {
        text += fmt::format("| {} | {} |{}\n", group.name, quoted(verifications), cells);
      }
    }
    return text;
  }

  std::string refusals() const {
    std::string text = R"(
## Reasons

The errors' texts. In braces stands what differs from one to another.

)";
    for (std::size_t index = 0; index < kinds_.size(); ++index) {
      std::string meaning = "(Not explained.)";
      for (const RefusalKind& kind : kRefusalKinds) {
        if (kinds_[index] == kind.text) meaning = kind.meaning;
      }
      text += fmt::format("{}. `{}`: {}\n", index + 1, kinds_[index], meaning);
    }
    return text;
  }

  std::vector<DrafterFindings> drafters_;
  std::vector<std::size_t> group_of_;  // by drafter
  std::vector<CoverageGroup> groups_;
  std::vector<std::string> kinds_;
  std::vector<std::string> trees_;
  std::vector<std::string> verifications_;
  std::vector<std::string> rules_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_COVERAGE_PAGE_H_
