// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "outrider/compare_methods.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;

std::string problem_of(const std::string& list) {
  try {
    read_methods(list);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

TEST(ReadMethods, PutsPlainDecodingFirst) {
  const std::vector<ComparedMethod> methods = read_methods("suffix,plain,ngram:min=2,max=4");
  ASSERT_EQ(methods.size(), 3U);
  EXPECT_EQ(methods[0].name, "plain");
  EXPECT_EQ(methods[0].speculation.drafter, "none");
  EXPECT_EQ(methods[1].speculation.drafter, "suffix");
  EXPECT_EQ(methods[2].name, "ngram:min=2,max=4");
  EXPECT_EQ(methods[2].speculation.drafter, "ngram:min=2,max=4");
}

TEST(ReadMethods, DraftsAsDeepAsPaysUnlessAShapeIsNamed) {
  const auto methods = read_methods(
      "model:a/b,model:a/b@chain:length=4,model:a/b@auto@exact,suffix@widths:2\\,1@coupled");
  ASSERT_EQ(methods.size(), 5U);
  EXPECT_TRUE(methods[1].speculation.adaptive);
  EXPECT_EQ(methods[1].speculation.tree, "");
  EXPECT_EQ(methods[1].speculation.verify, "coupled");
  EXPECT_FALSE(methods[2].speculation.adaptive);
  EXPECT_EQ(methods[2].speculation.tree, "chain:length=4");
  EXPECT_EQ(methods[2].speculation.verify, "exact");
  EXPECT_TRUE(methods[3].speculation.adaptive);
  EXPECT_EQ(methods[3].speculation.verify, "exact");
  EXPECT_EQ(methods[4].speculation.tree, "widths:2,1");
  EXPECT_EQ(methods[4].speculation.verify, "coupled");
}

TEST(ReadMethods, TakesPunctuationLiterallyBehindABackslash) {
  const auto methods =
      read_methods("first:suffix\\,model:x\\@y,model:a\\\\\\,b,model:p\\q,weights=int8");
  ASSERT_EQ(methods.size(), 4U);
  EXPECT_EQ(methods[1].speculation.drafter, "first:suffix,model:x@y");
  // Escapes within the spec: a path "a,b".
  EXPECT_EQ(methods[2].speculation.drafter, "model:a\\,b");
  EXPECT_EQ(methods[3].speculation.drafter, "model:p\\q,weights=int8");
}

TEST(ReadMethods, RefusesWhatCannotBeMeant) {
  EXPECT_THAT(problem_of(""), HasSubstr("at least one"));
  EXPECT_THAT(problem_of("suffix,,ngram"), HasSubstr("empty part"));
  EXPECT_THAT(problem_of("suffix@"), HasSubstr("empty part"));
  EXPECT_THAT(problem_of("@auto"), HasSubstr("empty part"));
  EXPECT_THAT(problem_of("suffix,suffix"), HasSubstr("each method once"));
  EXPECT_THAT(problem_of("plain@auto"), HasSubstr("without a drafter"));
  EXPECT_THAT(problem_of("suffix@auto@exact@more"), HasSubstr("4 parts"));
  EXPECT_THAT(problem_of("suffix@auto@perhaps"), HasSubstr("perhaps"));
  EXPECT_THAT(problem_of("suffix@ring:3"), HasSubstr("ring"));
  EXPECT_THAT(problem_of("parrot"), HasSubstr("parrot"));
}

TEST(PromisesSameText, WhereGreedyOrCoupled) {
  const auto methods = read_methods("suffix,suffix@chain:length=2");
  for (const ComparedMethod& method : methods) EXPECT_TRUE(promises_same_text(method, 0));
  EXPECT_TRUE(promises_same_text(methods[0], 1));
  EXPECT_TRUE(promises_same_text(methods[1], 1));
  EXPECT_FALSE(promises_same_text(methods[2], 1));
}

}  // namespace
}  // namespace outrider
