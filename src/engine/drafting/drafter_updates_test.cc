// SPDX-License-Identifier: Apache-2.0
// A drafter that is replaced between texts: loaded once it is complete and fits, without effect on
// the output.
#include "engine/drafting/drafter_updates.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "outrider/error.h"
#include "outrider/generate.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrompt = "A small test.";

class Updates : public ::testing::Test {
 protected:
  Updates() {
    test::write_tiny_pair(root_.path());
    model_ = Model::load(root_.path() / "target", {.threads = 1});
    without_ = Generator(model_).generate(kPrompt, options_);
  }
  Generator make(const fs::path& updates) const {
    return Generator(model_, {.drafter = "model:" + at("draft").string() +
                                         ",confidence=0.01,updates=" + updates.string(),
                              .drafter_options = {.threads = 1}});
  }
  fs::path at(const char* name) const { return root_.path() / name; }
  // As a trainer's export does: each file appears complete, config.json last.
  void put(const fs::path& from, const fs::path& to) const {
    fs::create_directories(to);
    for (const char* name : {"tokenizer.json", "model.safetensors", "config.json"}) {
      fs::copy_file(from / name, to / "partial");
      fs::rename(to / "partial", to / name);
    }
  }
  // Acceptance of one text, whose bits are those of plain decoding with any drafter.
  double acceptance(Generator& generator) const {
    const GenerateResult result = generator.generate(kPrompt, options_);
    EXPECT_EQ(result.ids, without_.ids);
    EXPECT_EQ(result.logits, without_.logits);
    return result.statistics.acceptance_rate();
  }
  static std::string message_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.what();
    }
    return "no error";
  }

  test::TemporaryDirectory root_;
  std::shared_ptr<const Model> model_;
  GenerateOptions options_{.max_tokens = 50, .ignore_eos = true, .keep_logits = true};
  GenerateResult without_;
};

TEST_F(Updates, ANewDrafterDraftsFromTheNextTextOn) {
  Generator generator = make(at("tuned"));
  const double before = acceptance(generator);
  EXPECT_LT(before, 0.95);
  EXPECT_FALSE(generator.update_drafter());  // no update there
  put(at("target"), at("tuned"));            // the target itself is the best drafter
  EXPECT_EQ(acceptance(generator), before);  // not checked yet
  EXPECT_TRUE(generator.update_drafter());
  EXPECT_EQ(acceptance(generator), 1);
  EXPECT_FALSE(generator.update_drafter());  // once only
  put(at("draft"), at("tuned"));
  EXPECT_TRUE(generator.update_drafter());
  EXPECT_EQ(acceptance(generator), before);
}

TEST_F(Updates, TheDraftersOwnPlaceIsNewsOnlyOnceItChanges) {
  Generator generator = make(at("draft"));
  EXPECT_FALSE(generator.update_drafter());
  put(at("target"), at("draft"));
  EXPECT_TRUE(generator.update_drafter());
  EXPECT_EQ(acceptance(generator), 1);
}

// An incomplete update is ignored. A broken one, or one with another vocabulary, is reported once,
// and the old drafter stays.
TEST_F(Updates, WhatDoesNotFitIsRefusedAndTheOldOneStays) {
  Generator generator = make(at("tuned"));
  const double before = acceptance(generator);
  fs::create_directories(at("tuned"));
  fs::copy_file(at("target") / "model.safetensors", at("tuned") / "model.safetensors");
  EXPECT_FALSE(generator.update_drafter());

  std::ofstream(at("tuned") / "config.json") << "{}";
  EXPECT_NE(message_of([&] { generator.update_drafter(); }), "no error");
  EXPECT_FALSE(generator.update_drafter());
  EXPECT_EQ(acceptance(generator), before);

  test::TinyShape shape;
  shape.vocabulary_size = 300;
  test::write_hugging_face(test::make_tiny_model(shape), at("other"));
  put(at("other"), at("tuned"));
  EXPECT_NE(message_of([&] { generator.update_drafter(); }).find("vocabulary"), std::string::npos);
  EXPECT_FALSE(generator.update_drafter());
  EXPECT_EQ(acceptance(generator), before);

  put(at("target"), at("tuned"));
  EXPECT_TRUE(generator.update_drafter());
  EXPECT_EQ(acceptance(generator), 1);
}

TEST_F(Updates, NoPlaceNoNews) {
  Generator generator(
      model_, {.drafter = "model:" + at("draft").string(), .drafter_options = {.threads = 1}});
  put(at("target"), at("draft"));
  EXPECT_FALSE(generator.update_drafter());
  Generator plain(model_);
  EXPECT_FALSE(plain.update_drafter());
  EXPECT_THROW(check_speculation({.drafter = "model:a,updates="}), UsageError);
  EXPECT_THROW(check_speculation({.drafter = "none,updates=a"}), UsageError);
}

}  // namespace
}  // namespace outrider
