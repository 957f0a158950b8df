// SPDX-License-Identifier: Apache-2.0
// A user's own drafter in generators and batches: its exceptions are passed on and end its text
// alone, whatever else is generated, and everything continues afterwards.
#include "outrider/own_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "outrider/batch.h"
#include "outrider/error.h"
#include "outrider/generate.h"
#include "tests/support/proofs/drafter_worlds.h"
#include "tests/support/proofs/own_drafters.h"

namespace outrider {
namespace {

using test::DrafterFiles;
using test::NamesWhatFollowed;
using ::testing::HasSubstr;

std::shared_ptr<const Model> target() {
  static const auto model = Model::load(DrafterFiles::get().target(), {.threads = 1});
  return model;
}

GenerateOptions options() {
  return {.max_tokens = 30,
          .sampling = DrafterFiles::get().few_characters({}),
          .ignore_eos = true,
          .keep_logits = true};
}

GenerateResult plain() { return Generator(target()).generate(DrafterFiles::kFewPrompt, options()); }

// Drafts what followed earlier, and throws once where it is told to.
class FailsWhenTold final : public test::RemembersTexts {
 public:
  enum class Where { nowhere, begin, propose, observe, bad_token };

  void begin(const OwnText& text) override {
    throw_at(Where::begin, text);
    RemembersTexts::begin(text);
    inner_.begin(text);
  }
  void propose(const OwnText& text, OwnDraft& draft) override {
    inner_.propose(text, draft);
    if (text.tokens.size() < min_tokens) return;
    throw_at(Where::propose, text);
    if (where == Where::bad_token && is_meant(text)) {
      where = Where::nowhere;
      draft.add(-1, draft.vocabulary_size());
    }
  }
  void observe(const OwnText& text, std::span<const int> accepted) override {
    inner_.observe(text, accepted);
    if (text.tokens.size() >= min_tokens) throw_at(Where::observe, text);
  }
  void end(std::int64_t id) noexcept override {
    RemembersTexts::end(id);
    inner_.end(id);
  }

  Where where = Where::nowhere;
  TokenId first_token = kNoToken;  // first token of the text in which it fails; kNoToken: any
  std::size_t min_tokens = 25;     // length of the text at which it fails

 private:
  bool is_meant(const OwnText& text) const {
    return first_token == kNoToken || text.tokens.front() == first_token;
  }
  void throw_at(Where here, const OwnText& text) {
    if (where != here || !is_meant(text)) return;
    where = Where::nowhere;
    throw std::range_error("of the program's own");
  }

  NamesWhatFollowed inner_;
};

TEST(OwnDrafterInGenerator, DraftsAndKeepsTheBits) {
  const GenerateResult expected = plain();
  for (const bool keeps : {false, true}) {
    const auto own = std::make_shared<NamesWhatFollowed>();
    {
      Generator generator(target(), {.drafter = "own", .own_drafter = own});
      generator.keep_last_text(keeps);
      const GenerateResult result = generator.generate(DrafterFiles::kFewPrompt, options());
      EXPECT_EQ(result.ids, expected.ids);
      EXPECT_EQ(result.logits, expected.logits);
      EXPECT_GT(result.statistics.accepted, 0);
      EXPECT_LT(result.statistics.target_passes, expected.statistics.target_passes);
      EXPECT_EQ(own->n_texts(), keeps ? 1U : 0U);
    }
  }
}

TEST(OwnDrafterInGenerator, WhatItThrowsComesOutAndTheGeneratorGoesOn) {
  using Where = FailsWhenTold::Where;
  const GenerateResult expected = plain();
  const auto own = std::make_shared<FailsWhenTold>();
  Generator generator(target(), {.drafter = "own", .own_drafter = own});
  for (const Where where : {Where::begin, Where::propose, Where::observe}) {
    own->where = where;
    EXPECT_THROW(generator.generate(DrafterFiles::kFewPrompt, options()), std::range_error);
    EXPECT_EQ(own->where, Where::nowhere);
    EXPECT_EQ(own->n_texts(), 0U);
    const GenerateResult again = generator.generate(DrafterFiles::kFewPrompt, options());
    EXPECT_EQ(again.ids, expected.ids);
    EXPECT_EQ(again.logits, expected.logits);
  }
  own->where = Where::bad_token;
  try {
    generator.generate(DrafterFiles::kFewPrompt, options());
    FAIL() << "a token outside of the vocabulary";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("[own drafter] node"));
    EXPECT_THAT(error.what(), HasSubstr("token ids below"));
  }
  EXPECT_EQ(generator.generate(DrafterFiles::kFewPrompt, options()).ids, expected.ids);
}

// If the draft failed, the round's tokens are not emitted.
TEST(OwnDrafterInGenerator, EmitsNothingOfARoundWhoseDraftFailed) {
  const auto own = std::make_shared<FailsWhenTold>();
  own->where = FailsWhenTold::Where::propose;
  own->min_tokens = 0;
  Generator generator(target(), {.drafter = "own", .own_drafter = own});
  int n_tokens = 0;
  GenerateOptions counted = options();
  counted.on_token = [&n_tokens](const TokenEvent&) { ++n_tokens; };
  EXPECT_THROW(generator.generate(DrafterFiles::kFewPrompt, counted), std::range_error);
  EXPECT_EQ(n_tokens, 0);
}

TEST(OwnDrafterInBatch, AnErrorEndsItsOwnTextAlone) {
  using Where = FailsWhenTold::Where;
  const std::vector<TokenId> prompt = target()->tokenizer().encode(DrafterFiles::kFewPrompt, false);
  std::vector<TokenId> other = prompt;
  other.insert(other.begin(), prompt.back());
  ASSERT_NE(other.front(), prompt.front());
  const auto expected = [](const std::vector<TokenId>& of) {
    const GenerateRequest request{.prompt = of, .options = options()};
    return std::move(Generator(target()).generate({&request, 1}).front());
  };
  for (const Where where : {Where::begin, Where::propose, Where::observe, Where::bad_token}) {
    const auto own = std::make_shared<FailsWhenTold>();
    own->where = where;
    own->first_token = other.front();
    Batch batch(target(), {});
    batch.add_drafter("own:mine,length=3", own);
    std::map<int, std::pair<GenerateResult, std::exception_ptr>> ended;
    const auto submit = [&](int name, const std::vector<TokenId>& of, const char* drafter) {
      batch.submit({.prompt = of, .options = options()}, {.drafter = drafter},
                   [&ended, name](GenerateResult result, std::exception_ptr error) {
                     ended[name] = {std::move(result), std::move(error)};
                   });
    };
    submit(0, prompt, "own:mine,length=3");
    submit(1, other, "own:mine,length=3");
    submit(2, prompt, "none");
    submit(3, prompt, "own:mine,length=3");
    while (batch.step()) {
    }
    ASSERT_EQ(ended.size(), 4U);
    EXPECT_NE(ended[1].second, nullptr);
    for (const int name : {0, 2, 3}) {
      EXPECT_EQ(ended[name].second, nullptr);
      EXPECT_EQ(ended[name].first.ids, expected(prompt).ids);
      EXPECT_EQ(ended[name].first.logits, expected(prompt).logits);
    }
    EXPECT_EQ(own->n_texts(), 0U);
    submit(4, other, "own:mine,length=3");
    while (batch.step()) {
    }
    EXPECT_EQ(ended[4].second, nullptr);
    EXPECT_EQ(ended[4].first.ids, expected(other).ids);
  }
}

TEST(OwnDrafterInBatch, IsNamedByItsSpec) {
  const auto own = std::make_shared<NamesWhatFollowed>();
  Batch batch(target(), std::vector<std::string>{"suffix"});
  EXPECT_THROW(batch.add_drafter("own", nullptr), UsageError);
  EXPECT_THROW(batch.add_drafter("suffix", own), UsageError);
  EXPECT_THROW(batch.add_drafter("none", own), UsageError);
  batch.add_drafter("own", own);
  batch.add_drafter("own:other", own);
  EXPECT_THROW(batch.add_drafter("own", own), UsageError);
  const auto submit = [&](const SpeculationOptions& speculation) {
    batch.submit({.prompt = {1}, .options = options()}, speculation,
                 [](GenerateResult, std::exception_ptr error) { EXPECT_EQ(error, nullptr); });
  };
  EXPECT_THROW(submit({.drafter = "own:third"}), UsageError);
  // Its distributions are not available to a rule.
  EXPECT_THROW(submit({.drafter = "own", .rule = "diff:alpha=0.1"}), UsageError);
  submit({.drafter = "own", .rule = "typical"});
  submit({.drafter = "own:other", .tree = "chain:length=2"});
  while (batch.step()) {
  }
}

TEST(OwnDrafterOfGenerator, SpecAndDrafterGoTogether) {
  const auto own = std::make_shared<NamesWhatFollowed>();
  const auto message = [](const SpeculationOptions& speculation) {
    try {
      check_speculation(speculation);
      return std::string();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(message({.drafter = "own", .own_drafter = own}), "");
  EXPECT_THAT(message({.drafter = "own"}), HasSubstr("a program that brings the drafter"));
  EXPECT_THAT(message({.drafter = "suffix", .own_drafter = own}), HasSubstr("expected own"));
  EXPECT_THAT(message({.own_drafter = own}), HasSubstr("expected own"));
  EXPECT_THROW(Generator(target(), {.drafter = "own"}), UsageError);
}

}  // namespace
}  // namespace outrider
