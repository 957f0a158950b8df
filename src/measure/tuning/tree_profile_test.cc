// SPDX-License-Identifier: Apache-2.0
// Measurements for trees: counts compared with a computation from both models' logits, and
// refusals. Times of models this small mean nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/text_beginnings.h"
#include "outrider/error.h"
#include "outrider/tune.h"
#include "tests/support/models/run_model.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class MeasureTreeProfile : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_tiny_pair(folder_.path());
    model_ = Model::load(folder_.path() / "target", {.threads = 1});
    test::write_tiny_texts(folder_.path() / "text.txt");
  }
  TreeProfileOptions quick() const {
    TreeProfileOptions options;
    options.texts.paths = {folder_.path() / "text.txt"};
    options.texts.separator = "|";
    options.texts.count = 6;
    options.texts.prompt_tokens = 5;
    options.texts.max_tokens = 40;
    options.ranks = 3;
    options.max_nodes = 4;
    options.rounds = 1;
    return options;
  }
  SpeculationOptions drafter(const std::string& more = {}) const {
    return {.drafter = "model:" + (folder_.path() / "draft").string() + more,
            .drafter_options = {.threads = 1}};
  }
  std::string error_of(const SpeculationOptions& speculation, const TreeProfileOptions& options) {
    try {
      measure_tree_profile(model_, speculation, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  test::TemporaryDirectory folder_;
  std::shared_ptr<const Model> model_;
};

// Logits after every token of a text.
test::Rows logits_of(const Model& model, std::span<const TokenId> tokens) {
  const auto sequence = model.language_model().open({});
  return test::run_block(model.language_model(), *sequence, tokens);
}

int rank_of(const test::Row& logits, TokenId token) {
  const float logit = logits[static_cast<std::size_t>(token)];
  int rank = 0;
  for (std::size_t other = 0; other < logits.size(); ++other) {
    if (logits[other] > logit ||
        (logits[other] == logit && other < static_cast<std::size_t>(token))) {
      ++rank;
    }
  }
  return rank;
}

TEST_F(MeasureTreeProfile, CountsWhichChildStands) {
  // At temperature 0 everything follows from the target's own text. At a round's start the
  // drafter's rank of the next token says which child is accepted; if one is, one more token is
  // emitted.
  const TreeProfileOptions options = quick();
  const TreeProfile profile = measure_tree_profile(model_, drafter(), options);
  const auto draft = Model::load(folder_.path() / "draft", {.threads = 1});
  const auto beginnings = text_beginnings(model_->tokenizer(), options.texts, "test");
  ASSERT_THAT(beginnings, SizeIs(6));
  std::vector<std::int64_t> accepted(3, 0);
  std::int64_t n_nodes = 0;
  Generator plain(model_);
  for (const std::vector<TokenId>& beginning : beginnings) {
    const GenerateRequest request{.prompt = beginning,
                                  .options = {.max_tokens = 40, .ignore_eos = true}};
    std::vector<TokenId> text = beginning;
    const auto ids = plain.generate({&request, 1}).front().ids;
    text.insert(text.end(), ids.begin(), ids.end());
    const test::Rows logits = logits_of(*draft, text);
    // The very last token is not drafted, since none would follow it.
    for (std::size_t at = beginning.size(); at + 1 < text.size();) {
      const int rank = rank_of(logits[at - 1], text[at]);
      ++n_nodes;
      if (rank < 3) ++accepted[static_cast<std::size_t>(rank)];
      at += rank < 3 ? 2 : 1;
    }
  }
  EXPECT_EQ(profile.n_nodes, n_nodes);
  ASSERT_EQ(profile.accept_by_rank.size(), 3U);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_DOUBLE_EQ(profile.accept_by_rank[rank],
                     static_cast<double>(accepted[rank]) / static_cast<double>(n_nodes));
  }
  EXPECT_GT(accepted[0], 20);
  EXPECT_GT(accepted[1] + accepted[2], 0);
  EXPECT_EQ(profile.temperature, 0);
  EXPECT_GT(profile.draft_seconds + profile.level_seconds, 0);
  std::vector<int> rows;
  for (const TreeProfile::Pass& pass : profile.passes) rows.push_back(pass.rows);
  EXPECT_EQ(rows, (std::vector<int>{1, 2, 4, 5}));
}

TEST_F(MeasureTreeProfile, ServesEveryWayToProposeChildren) {
  for (const char* siblings : {"without", "with", "top"}) {
    TreeProfileOptions options = quick();
    options.siblings = siblings;
    options.texts.sampling.temperature = 1;
    const TreeProfile profile = measure_tree_profile(model_, drafter(), options);
    EXPECT_EQ(profile.siblings, siblings);
    EXPECT_EQ(profile.temperature, 1);
    const double sum =
        std::accumulate(profile.accept_by_rank.begin(), profile.accept_by_rank.end(), 0.0);
    EXPECT_GT(sum, 0.1);
    EXPECT_LE(sum, 1);
    // The plan made from it works.
    const std::string file = (folder_.path() / "profile.json").string();
    write_tree_profile(profile, file);
    SpeculationOptions speculation = drafter();
    speculation.tree = "sequoia:profile=" + file;
    Generator generator(model_, speculation);
    EXPECT_EQ(generator.generate("A test", {.max_tokens = 20, .ignore_eos = true}).ids,
              Generator(model_).generate("A test", {.max_tokens = 20, .ignore_eos = true}).ids);
  }
}

TEST_F(MeasureTreeProfile, RefusesWhatCannotBeMeant) {
  const auto with = [this](const std::function<void(TreeProfileOptions&)>& change) {
    TreeProfileOptions options = quick();
    change(options);
    return error_of(drafter(), options);
  };
  EXPECT_THAT(with([](auto& options) { options.texts.paths.clear(); }), HasSubstr("texts"));
  EXPECT_THAT(with([](auto& options) { options.texts.count = 0; }), HasSubstr("texts"));
  EXPECT_THAT(
      with([](auto& options) { options.texts.count = 31; }),
      HasSubstr("expected 31 places with 5 tokens each (--texts and --prompt-tokens ask for "
                "fewer), got 30"));
  EXPECT_THAT(with([](auto& options) { options.texts.prompt_tokens = 0; }), HasSubstr("prompt"));
  EXPECT_THAT(with([](auto& options) { options.texts.max_tokens = 7; }), HasSubstr("max_tokens"));
  EXPECT_THAT(with([](auto& options) { options.ranks = 64; }), HasSubstr("ranks"));
  EXPECT_THAT(with([](auto& options) { options.max_nodes = 256; }), HasSubstr("1 to 255, got 256"));
  EXPECT_THAT(with([](auto& options) { options.rounds = 0; }), HasSubstr("rounds"));
  EXPECT_THAT(with([](auto& options) { options.texts.max_tokens = 1 << 20; }),
              HasSubstr("room for 5"));
  EXPECT_THAT(
      with([](auto& options) { options.texts.prompt_tokens = std::numeric_limits<int>::max(); }),
      HasSubstr("room for 5"));
  const std::string part = drafter().drafter;
  EXPECT_THAT(error_of({.drafter = "staged:" + part + "+ngram"}, quick()),
              HasSubstr("got one that drafts chains"));
  EXPECT_THAT(error_of({.drafter = "none"}, quick()), HasSubstr("ranked by a distribution"));
  EXPECT_THAT(error_of({.drafter = "ngram"}, quick()), HasSubstr("ranked by a distribution"));
}

TEST_F(MeasureTreeProfile, SaysWhereNothingIsDrafted) {
  // A drafter whose context is shorter than the prompts.
  std::filesystem::copy(folder_.path() / "draft", folder_.path() / "short");
  const auto file = folder_.path() / "short" / "config.json";
  std::ifstream stream(file);
  std::string config{std::istreambuf_iterator<char>(stream), {}};
  const std::string key = "\"max_position_embeddings\":";
  const std::size_t at = config.find(key);
  ASSERT_NE(at, std::string::npos);
  const std::size_t end = config.find_first_of(",}", at);
  std::ofstream(file) << config.replace(at + key.size(), end - at - key.size(), " 4");
  SpeculationOptions speculation = drafter();
  speculation.drafter = "model:" + (folder_.path() / "short").string();
  EXPECT_THAT(error_of(speculation, quick()), HasSubstr("got none (is its context too short?)"));
}

TEST_F(MeasureTreeProfile, EndsWhereProgressThrows) {
  TreeProfileOptions options = quick();
  double last = 0;
  int n_calls = 0;
  options.progress = [&](std::string_view, double share) {
    EXPECT_GE(share, last);
    EXPECT_LE(share, 1);
    last = share;
    ++n_calls;
  };
  measure_tree_profile(model_, drafter(), options);
  for (const int end : {1, 4, n_calls}) {
    int n = 0;
    options.progress = [&](std::string_view, double) {
      if (++n == end) throw std::runtime_error("enough");
    };
    EXPECT_THROW(measure_tree_profile(model_, drafter(), options), std::runtime_error);
  }
}

TEST_F(MeasureTreeProfile, BeginningsComeFromAllOverALongText) {
  // One document with many pieces.
  std::ofstream text(folder_.path() / "long.txt");
  for (int line = 0; line < 40'000; ++line) text << line << " bottles on the wall\n";
  text.close();
  // The last pieces are included; of a text with two different halves, each half has its share.
  std::ofstream half(folder_.path() / "halves.txt");
  for (int line = 0; line < 79; ++line) {
    half << (line < 40 ? "first half of the text|" : "second half of the text|");
  }
  half.close();
  const ContinuedTexts halves = {
      .paths = {folder_.path() / "halves.txt"}, .separator = "|", .count = 40, .prompt_tokens = 5};
  const auto spread = text_beginnings(model_->tokenizer(), halves, "test");
  const auto second = std::count(spread.begin(), spread.end(), spread.back());
  EXPECT_NE(spread.front(), spread.back());
  EXPECT_THAT(second, ::testing::AllOf(::testing::Ge(19), ::testing::Le(21)));

  // A page suffices if it has enough places.
  std::ofstream page(folder_.path() / "page.txt");
  for (int line = 0; line < 150; ++line) page << line << " bottles on the wall\n";
  page.close();
  const ContinuedTexts short_text = {
      .paths = {folder_.path() / "page.txt"}, .count = 20, .prompt_tokens = 8};
  const auto on_page = text_beginnings(model_->tokenizer(), short_text, "test");
  ASSERT_THAT(on_page, SizeIs(20));
  for (std::size_t i = 1; i < on_page.size(); ++i) EXPECT_NE(on_page[i], on_page[i - 1]);

  // If there are too few, the error gives the total number, not that of the last split.
  ContinuedTexts too_many = short_text;
  too_many.prompt_tokens = 400;
  try {
    (void)text_beginnings(model_->tokenizer(), too_many, "test");
    FAIL() << "a page has not twenty times 400 tokens";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                ::testing::MatchesRegex(".*20 places with 400 tokens each.*, got [1-9][0-9]?"));
  }

  const ContinuedTexts files = {
      .paths = {folder_.path() / "long.txt"}, .count = 10, .prompt_tokens = 8};
  const auto beginnings = text_beginnings(model_->tokenizer(), files, "test");
  ASSERT_THAT(beginnings, SizeIs(10));
  for (std::size_t i = 0; i < beginnings.size(); ++i) {
    EXPECT_THAT(beginnings[i], SizeIs(8));
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(beginnings[i], beginnings[j]);
  }
}

}  // namespace
}  // namespace outrider
