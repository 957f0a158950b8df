// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "outrider/error.h"
#include "outrider/generate.h"
#include "speculate/registry/drafter_registry.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;

TEST(ReadCascade, NamesTheTargetAndTheDrafter) {
  const Cascade cascade = read_cascade("spec:small>dir/middle>large.gguf", "chow:alpha=0.3");
  EXPECT_EQ(cascade.model, "large.gguf");
  EXPECT_EQ(cascade.drafter, "cascade:chow:alpha=0.3+model:dir/middle+model:small");
  EXPECT_NO_THROW(read_drafter(cascade.drafter));
}

TEST(ReadCascade, PathsMayHoldAnything) {
  const Cascade cascade = read_cascade("spec:a\\>b>c+d,e=f>g\\\\h", "exact");
  EXPECT_EQ(cascade.model, "g\\h");
  EXPECT_EQ(cascade.drafter, "cascade:exact+model:c\\+d\\,e\\=f+model:a>b");
  EXPECT_NO_THROW(read_drafter(cascade.drafter));
}

TEST(ReadCascade, RefusesAnythingElse) {
  const auto refusal = [](const std::string& spec) -> std::string {
    try {
      read_cascade(spec, "exact");
    } catch (const UsageError& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_THAT(refusal("spec:a>b"),
              HasSubstr("three models from the smallest to the largest, got 2"));
  EXPECT_THAT(refusal("spec:a>b>c>d"), HasSubstr("got 4"));
  EXPECT_THAT(refusal("spec:a>>c"), HasSubstr("an empty path"));
  EXPECT_THAT(refusal("token:chow,alpha=0.3"), HasSubstr("got token"));
  EXPECT_THAT(refusal(""), HasSubstr("spec:A>B>C"));
}

}  // namespace
}  // namespace outrider
