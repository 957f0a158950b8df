// SPDX-License-Identifier: Apache-2.0
// `outrider drafters` and `outrider rules` describe what the readers accept: each accepted key is
// described, each described key is read, and every example is valid.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/error.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/rules/make_rule.h"
#include "speculate/rules/rule_registry.h"

namespace outrider {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A kind and the function that reads its specs.
struct Described {
  SpecDescription description;
  std::function<void(const std::string& spec)> read;
  std::string_view ends_of_value = ",";  // what ends a key's value
  std::string flag = "--drafter";        // that takes the spec
};

std::vector<Described> all_described() {
  std::vector<Described> all;
  for (const DrafterKind& kind : drafter_kinds()) {
    all.push_back({.description = kind.description,
                   .read = [](const std::string& spec) { read_drafter(spec); },
                   .ends_of_value = kind.read == nullptr ? ",+" : ","});
  }
  for (const RuleKind& kind : rule_kinds()) {
    all.push_back({.description = kind.description,
                   .read = [](const std::string& spec) { make_verification(spec, "exact"); },
                   .flag = "--rule"});
  }
  return all;
}

// The reader's error for a spec; empty if it accepts it. A missing file (a router's) does not
// count.
std::string objection(const Described& kind, const std::string& spec) {
  try {
    kind.read(spec);
  } catch (const UsageError& error) {
    return error.what();
  } catch (const Error&) {
    return {};
  }
  return {};
}

// The position of "key=value" in a spec.
struct Place {
  std::size_t begin = 0;
  std::size_t value = 0;
  std::size_t end = 0;
};
Place place_of(const Described& kind, const std::string& spec, const std::string& key) {
  for (const char before : {':', ','}) {
    const std::size_t at = spec.rfind(before + key + '=');
    if (at == std::string::npos) continue;
    const std::size_t value = at + key.size() + 2;
    return {at + 1, value, std::min(spec.find_first_of(kind.ends_of_value, value), spec.size())};
  }
  return {};
}

// The keys listed in a refusal: "keys among min, max, got no-such-key".
std::set<std::string> listed_keys(const std::string& refusal) {
  constexpr std::string_view kBefore = "keys among ";
  std::set<std::string> keys;
  const std::size_t begin = refusal.find(kBefore);
  if (begin == std::string::npos) return keys;
  const std::size_t first = begin + kBefore.size();
  std::istringstream list(refusal.substr(first, refusal.rfind(", got ") - first));
  for (std::string key; std::getline(list >> std::ws, key, ',');) keys.insert(key);
  return keys;
}

// The spec in the example: what follows the flag.
std::string spec_in_command(const Described& kind) {
  std::istringstream words(kind.description.example);
  for (std::string word; words >> word;) {
    if (word == kind.flag && words >> word) return word;
  }
  return {};
}

void check_accepted_keys(const Described& kind, std::vector<std::string>& problems) {
  const SpecDescription& description = kind.description;
  constexpr std::string_view kProbe = "no-such-key=1";
  std::string probed;
  if (description.keys.empty()) {
    if (kind.ends_of_value != ",") return;  // its parts take keys of their own
    probed = fmt::format("{}:{}", description.form, kProbe);
  } else {
    probed = description.keys[0].example;
    probed.insert(place_of(kind, probed, description.keys[0].name).end, fmt::format(",{}", kProbe));
  }
  const std::string refusal = objection(kind, probed);
  std::set<std::string> described;
  for (const KeyDescription& key : description.keys) described.insert(key.name);
  if (refusal.empty() || listed_keys(refusal) != described) {
    problems.push_back(fmt::format("{} is refused with other keys: {}", probed, refusal));
  }
}

void check_key(const Described& kind, const KeyDescription& key,
               std::vector<std::string>& problems) {
  const std::string& spec = key.example;
  const Place place = place_of(kind, spec, key.name);
  if (place.end == 0) {
    problems.push_back(fmt::format("{}: not in its example {}", key.name, spec));
    return;
  }
  if (!objection(kind, spec).empty()) {
    problems.push_back(fmt::format("{}: its example is refused: {}", key.name, spec));
  }
  // No key takes an empty value: a refused one has been read.
  std::string emptied = spec;
  emptied.erase(place.value, place.end - place.value);
  if (objection(kind, emptied).empty()) {
    problems.push_back(fmt::format("{}: nobody reads it in {}", key.name, emptied));
  }
  std::string without = spec;
  const bool is_first = spec[place.begin - 1] == ':';
  const bool is_followed = place.end < spec.size() && spec[place.end] == ',';
  without.erase(is_first ? place.begin : place.begin - 1,
                place.end - place.begin + (!is_first || is_followed ? 1 : 0));
  const bool is_required = !objection(kind, without).empty();
  if (is_required != key.default_value.empty()) {
    problems.push_back(fmt::format("{}: {} is {}", key.name, without,
                                   is_required ? "refused in spite of the default" : "taken"));
  }
  if (key.value.empty() || key.meaning.empty()) {
    problems.push_back(fmt::format("{}: no words", key.name));
  }
}

std::vector<std::string> problems_of(const Described& kind) {
  std::vector<std::string> problems;
  const SpecDescription& description = kind.description;
  for (const std::string* words : {&description.form, &description.summary, &description.needs,
                                   &description.about, &description.source, &description.pays}) {
    if (words->empty()) problems.emplace_back("a field without words");
  }
  if (!description.form.starts_with(description.name)) problems.emplace_back("another name");
  check_accepted_keys(kind, problems);
  for (const KeyDescription& key : description.keys) check_key(kind, key, problems);
  const std::string spec = spec_in_command(kind);
  if (spec.empty() || !objection(kind, spec).empty()) {
    problems.push_back(fmt::format("its command has no {}: {}", kind.flag, description.example));
  }
  if (spec.find(description.name) == std::string::npos) {
    problems.emplace_back("its command shows another kind");
  }
  return problems;
}

TEST(SpecDescriptions, AreWhatTheReadersTake) {
  for (const Described& kind : all_described()) {
    SCOPED_TRACE(kind.description.name);
    EXPECT_THAT(problems_of(kind), IsEmpty());
  }
}

// These checks can fail: for a key that is not described, one that is not read, and so on.
TEST(SpecDescriptions, AreFoundOut) {
  const std::vector<Described> all = all_described();
  const auto ngram = std::find_if(all.begin(), all.end(), [](const Described& kind) {
    return kind.description.name == "ngram";
  });
  ASSERT_NE(ngram, all.end());
  const auto find_problems = [&ngram](const auto& spoil) {
    Described spoiled = *ngram;
    spoil(spoiled.description);
    return problems_of(spoiled);
  };
  EXPECT_THAT(find_problems([](SpecDescription& of) { of.keys.pop_back(); }),
              Contains(HasSubstr("is refused with other keys")));
  EXPECT_THAT(find_problems([](SpecDescription& of) {
                of.keys.push_back({"mood", "M", "1", "How it feels.", "ngram:mood=1", false});
              }),
              Contains(HasSubstr("mood: its example is refused")));
  EXPECT_THAT(find_problems([](SpecDescription& of) { of.keys[0].default_value.clear(); }),
              Contains(HasSubstr("is taken")));
  EXPECT_THAT(find_problems([](SpecDescription& of) { of.keys[0].example = "ngram:max=3"; }),
              Contains(HasSubstr("min: not in its example")));
  EXPECT_THAT(find_problems([](SpecDescription& of) { of.example = "outrider generate"; }),
              Contains(HasSubstr("its command has no --drafter")));
  // A reader that ignores a key.
  Described deaf = *ngram;
  deaf.read = [read = ngram->read](const std::string& spec) {
    if (spec.find("match=") == std::string::npos || spec.find("no-such") != std::string::npos) {
      read(spec);
    }
  };
  EXPECT_THAT(problems_of(deaf), Contains(HasSubstr("match: nobody reads it")));
}

// The registry refuses undescribed keys before a reader sees them.
TEST(SpecDescriptions, NoOtherKeyReachesAReader) {
  Described suffix{.description = {}, .read = [](const std::string& spec) { read_drafter(spec); }};
  EXPECT_THAT(objection(suffix, "suffix:mood=1"),
              HasSubstr("keys among length, total, cut, factor, across, got mood"));
  EXPECT_THAT(objection(suffix, "reference:file=a,file=b"), IsEmpty());
  EXPECT_THAT(objection(suffix, "suffix:total=9,total=9"), HasSubstr("each key once"));
}

TEST(SpecDescriptions, RulesSayWhatTheyNeed) {
  for (const Described& kind : all_described()) {
    if (kind.flag != "--rule" || kind.description.name == "router") continue;  // needs its file
    const Verification verification = make_verification(spec_in_command(kind), "exact");
    EXPECT_EQ(kind.description.needs == "distributions",
              verification.acceptance->needs().draft_prob)
        << kind.description.name;
  }
}

}  // namespace
}  // namespace outrider
