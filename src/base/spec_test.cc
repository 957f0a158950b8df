// SPDX-License-Identifier: Apache-2.0
#include "base/spec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "outrider/error.h"

namespace outrider {
namespace {

TEST(Spec, NameValueAndKeys) {
  const Spec spec = Spec::parse("drafter", "model:/models/small one,confidence=0.4,length=3");
  EXPECT_EQ(spec.name(), "model");
  EXPECT_EQ(spec.value(), "/models/small one");
  EXPECT_EQ(spec.number("confidence", 0, 1), 0.4);
  EXPECT_EQ(spec.integer("length", 1, 9), 3);
  EXPECT_EQ(spec.number("absent", 0, 1), std::nullopt);

  const Spec keys_only = Spec::parse("tree", "chain:length=8");
  EXPECT_EQ(keys_only.value(), "");
  EXPECT_EQ(keys_only.integer("length", 1, 9), 8);
  EXPECT_EQ(Spec::parse("rule", "exact").name(), "exact");
}

TEST(Spec, ListsOfValues) {
  const Spec spec = Spec::parse("tree", "widths:4,2,2,siblings=with");
  EXPECT_EQ(spec.values(), (std::vector<std::string>{"4", "2", "2"}));
  EXPECT_EQ(spec.integers(1, 9), (std::vector<int>{4, 2, 2}));
  EXPECT_EQ(spec.text("siblings"), "with");
  EXPECT_EQ(spec.choice("siblings", {"with", "without"}), "with");
  EXPECT_EQ(spec.text("file"), std::nullopt);
  EXPECT_EQ(Spec::parse("tree", "chain").values(), std::vector<std::string>{});
  EXPECT_EQ(Spec::parse("tree", "widths:4\\,2").values(), std::vector<std::string>{"4,2"});
  for (const char* bad : {"widths:4,,2", "widths:0", "widths:2.5", "widths:x", "widths:10"}) {
    EXPECT_THROW(Spec::parse("tree", bad).integers(1, 9), UsageError) << bad;
  }
  EXPECT_THROW(spec.choice("siblings", {"few", "many"}), UsageError);
  // If a single value is allowed, two are an error.
  EXPECT_THROW(spec.value(), UsageError);
  EXPECT_THROW(spec.require_no_value(), UsageError);
}

TEST(Spec, BackslashEscapes) {
  const Spec spec = Spec::parse("drafter", "model:/odd\\,name\\=x,confidence=1");
  EXPECT_EQ(spec.value(), "/odd,name=x");
  EXPECT_EQ(spec.number("confidence", 0, 1), 1);
  // A path with '=' after a character that no key contains is a value.
  EXPECT_EQ(Spec::parse("drafter", "model:/a/b=c").value(), "/a/b=c");
}

TEST(Spec, KeysThatMayBeRepeated) {
  const Spec spec = Spec::parse("drafter", "reference:file=a,file=b\\,c,min=2");
  spec.require_keys({"file", "min"}, {"file"});
  EXPECT_EQ(spec.texts("file"), (std::vector<std::string>{"a", "b,c"}));
  EXPECT_EQ(spec.texts("min"), std::vector<std::string>{"2"});
  EXPECT_TRUE(spec.texts("length").empty());
  EXPECT_THROW(spec.require_keys({"file", "min"}), UsageError);
}

TEST(Spec, SaysWhatIsWrong) {
  const auto message = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([] { Spec::parse("tree", ""); }), "[read tree] : expected a name, got nothing");
  EXPECT_EQ(
      message([] { Spec::parse("tree", "chain:length=1,length=2").require_keys({"length"}); }),
      "[read tree] chain:length=1,length=2: expected each key once, got length twice");
  EXPECT_EQ(message([] { Spec::parse("tree", "chain:length=1,wide"); }),
            "[read tree] chain:length=1,wide: expected key=value after a comma, got wide");
  const Spec spec = Spec::parse("tree", "chain:length=1.5,depth=x,width=nan,height=9");
  EXPECT_EQ(message([&] {
              spec.require_name({"star", "ring"});
            }),
            "[read tree] chain:length=1.5,depth=x,width=nan,height=9: expected one of star, ring, "
            "got chain");
  EXPECT_NE(message([&] { spec.require_keys({"length"}); }).find("keys among length, got depth"),
            std::string::npos);
  EXPECT_NE(message([&] { spec.integer("length", 1, 9); }).find("a whole number, got 1.5"),
            std::string::npos);
  for (const char* key : {"depth", "width", "height"}) {
    EXPECT_NE(message([&] { spec.number(key, 1, 5); }).find("a number from 1 to 5"),
              std::string::npos)
        << key;
  }
}

TEST(Spec, IsWrittenAgainWithOneKeyChanged) {
  const Spec spec = Spec::parse("rule", "lossy:alpha=0.3,beta=auto");
  EXPECT_EQ(spec.without("alpha"), "lossy:beta=auto");
  EXPECT_EQ(spec.without("absent"), "lossy:alpha=0.3,beta=auto");
  EXPECT_EQ(spec.with("alpha", "0.5"), "lossy:beta=auto,alpha=0.5");
  EXPECT_EQ(Spec::parse("rule", "chow").with("alpha", "-1"), "chow:alpha=-1");
  EXPECT_EQ(Spec::parse("rule", "chow:alpha=1").with("alpha", "0"), "chow:alpha=0");
  const Spec awkward = Spec::parse("drafter", "model:/a\\,b\\=c,confidence=1");
  EXPECT_EQ(Spec::parse("drafter", awkward.with("confidence", "0")).value(), "/a,b=c");
}

TEST(Spec, ListsOfSpecs) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(split_specs("ngram:min=2,max=4,suffix", ','), (Parts{"ngram:min=2,max=4", "suffix"}));
  EXPECT_EQ(split_specs("model:a\\,b,confidence=0.5,none", ','),
            (Parts{"model:a\\,b,confidence=0.5", "none"}));
  EXPECT_EQ(split_specs("model:a\\+b,confidence=0.5+ngram", '+'),
            (Parts{"model:a+b,confidence=0.5", "ngram"}));
  EXPECT_EQ(split_specs("staged:model:a\\+ngram+suffix", '+'),
            (Parts{"staged:model:a+ngram", "suffix"}));
  EXPECT_EQ(Spec::parse("drafter", split_specs("model:a\\+b+ngram", '+')[0]).value(), "a+b");
  EXPECT_EQ(split_specs("max=4,suffix", ','), (Parts{"max=4", "suffix"}));  // nothing to continue
  EXPECT_EQ(split_specs("a,", ','), (Parts{"a", ""}));
  EXPECT_EQ(split_specs("a\\", ','), (Parts{"a\\"}));
  EXPECT_EQ(split_specs("", ','), Parts{});
}

}  // namespace
}  // namespace outrider
