// SPDX-License-Identifier: Apache-2.0
// Recording verdicts does not change the output, and the log holds the target's own distribution.
#include "outrider/verdict_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/files/verdict_recorder.h"
#include "io/verdict_log.h"
#include "outrider/error.h"
#include "outrider/generate.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/near.h"
#include "tests/support/temporary_directory.h"
#include "tokenizer/same_vocabulary.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using test::near;

constexpr const char* kPrompt = "A small test.";

class Recording : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<test::TemporaryDirectory>();
    test::write_tiny_pair(folder_->path());
    model_ = Model::load(folder_->path() / "target", {.threads = 1});
  }
  static void TearDownTestSuite() {
    model_.reset();
    folder_.reset();
  }

  static Generator make(const std::string& tree, const std::string& verify) {
    return Generator(model_, {.drafter = "model:" + (folder_->path() / "draft").string(),
                              .tree = tree,
                              .verify = verify,
                              .drafter_options = {.threads = 1}});
  }
  static std::string message_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  fs::path log_path() const { return root_.path() / "log"; }

  static inline std::unique_ptr<test::TemporaryDirectory> folder_;
  static inline std::shared_ptr<const Model> model_;
  test::TemporaryDirectory root_;
};

TEST_F(Recording, ChangesNoBitOfTheOutput) {
  VerdictLog log(*model_, log_path());
  for (const double temperature : {0.0, 1.0}) {
    for (const char* tree : {"chain:length=4", "widths:3,2"}) {
      for (const char* verify : {"exact", "coupled", "traversal"}) {
        GenerateOptions options{.max_tokens = 40,
                                .sampling = {.temperature = temperature, .repetition_penalty = 1.1},
                                .seed = 9,
                                .ignore_eos = true,
                                .keep_logits = true};
        const GenerateResult without = make(tree, verify).generate(kPrompt, options);
        options.verdict_log = &log;
        const GenerateResult with = make(tree, verify).generate(kPrompt, options);
        EXPECT_EQ(with.ids, without.ids);
        EXPECT_EQ(with.logits, without.logits);
        EXPECT_EQ(with.text, without.text);
        EXPECT_EQ(with.accepted_per_round, without.accepted_per_round);
      }
    }
  }
  EXPECT_EQ(log.failure(), "");
  EXPECT_EQ(VerdictLogReader(log_path()).read_new().size(), 12U);
}

// Compares each row with the result's logits, by the definition. Penalties and temperature do not
// appear: the log records the model.
TEST_F(Recording, HoldsTheTargetsOwnDistribution) {
  const int n_vocabulary = model_->summary().vocabulary_size;
  for (const int top_k : {1, 5, n_vocabulary, n_vocabulary + 1}) {
    const fs::path path = root_.path() / std::to_string(top_k);
    VerdictLog log(*model_, path, {.top_k = top_k});
    const GenerateOptions options{.max_tokens = 20,
                                  .sampling = {.temperature = 0.7, .presence_penalty = 0.5},
                                  .ignore_eos = true,
                                  .keep_logits = true,
                                  .verdict_log = &log};
    const GenerateResult result = make("chain:length=3", "exact").generate(kPrompt, options);
    VerdictLogReader reader(path);
    const auto texts = reader.read_new();
    ASSERT_EQ(texts.size(), 1U);
    const LoggedText& text = texts[0];
    const auto n_kept = static_cast<std::size_t>(std::min(top_k, n_vocabulary));
    EXPECT_EQ(reader.format()->n_kept, static_cast<int>(n_kept));
    EXPECT_EQ(reader.format()->vocabulary, vocabulary_id(model_->tokenizer()));
    const std::vector<TokenId> prompt = model_->tokenizer().encode(kPrompt, true);
    ASSERT_EQ(text.n_prompt, static_cast<int>(prompt.size()));
    std::vector<TokenId> tokens = prompt;
    tokens.insert(tokens.end(), result.ids.begin(), result.ids.end());
    EXPECT_EQ(text.tokens, tokens);
    ASSERT_EQ(text.n_generated(), 20);
    const auto width = static_cast<std::size_t>(n_vocabulary);
    for (std::size_t row = 0; row < 20; ++row) {
      const auto logits = std::span(result.logits).subspan(row * width, width);
      double sum = 0;
      for (const float logit : logits) sum += std::exp(double{logit});
      const auto ids = std::span(text.kept_ids).subspan(row * n_kept, n_kept);
      const auto logprobs = std::span(text.kept_logprobs).subspan(row * n_kept, n_kept);
      double listed = 0;
      for (std::size_t i = 0; i < n_kept; ++i) {
        const double logprob = double{logits[static_cast<std::size_t>(ids[i])]} - std::log(sum);
        EXPECT_TRUE(near(logprobs[i], logprob, 1e-5));
        EXPECT_LE(logprobs[i], logprobs[i == 0 ? 0 : i - 1]);
        listed += std::exp(logprob);
      }
      EXPECT_EQ(ids[0], std::max_element(logits.begin(), logits.end()) - logits.begin());
      if (n_kept == width) {
        EXPECT_EQ(text.rest_logprobs[row], -std::numeric_limits<float>::infinity());
      } else {
        EXPECT_TRUE(near(std::exp(double{text.rest_logprobs[row]}), 1 - listed, 1e-6));
      }
    }
  }
}

TEST_F(Recording, TextsTogetherAreTextsApart) {
  VerdictLog log(*model_, log_path());
  std::vector<GenerateRequest> requests;
  for (int i = 0; i < 3; ++i) {
    requests.push_back({.prompt = {0, 40 + i, 7},
                        .options = {.max_tokens = 6 + i, .ignore_eos = true, .verdict_log = &log}});
  }
  requests[1].options.verdict_log = nullptr;  // this one is not recorded
  const auto results = make("chain:length=3", "exact").generate(requests);
  const auto texts = VerdictLogReader(log_path()).read_new();
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_EQ(texts[0].tokens[1], 40);
  EXPECT_EQ(texts[1].tokens[1], 42);
  EXPECT_EQ(texts[1].n_generated(), 8);
}

// A file-size limit simulates a full disk.
TEST_F(Recording, AFullDiskEndsTheRecordAndNothingElse) {
  VerdictLog log(*model_, log_path());
  GenerateOptions options{.max_tokens = 30, .ignore_eos = true};
  const GenerateResult without = make("chain:length=3", "exact").generate(kPrompt, options);
  options.verdict_log = &log;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  rlimit tight = old;
  tight.rlim_cur = 2000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const GenerateResult with = make("chain:length=3", "exact").generate(kPrompt, options);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_EQ(with.ids, without.ids);
  EXPECT_NE(log.failure().find("File too large"), std::string::npos) << log.failure();
  EXPECT_EQ(log.failure().find('\n'), std::string::npos);
  make("chain:length=3", "exact").generate(kPrompt, options);  // it stays ended
  EXPECT_TRUE(VerdictLogReader(log_path()).read_new().empty());
}

TEST_F(Recording, RefusesWhatCannotBeMeant) {
  EXPECT_THROW(VerdictLog(*model_, log_path(), {.top_k = 0}), UsageError);
  EXPECT_NE(
      message_of([&] { VerdictLog(*model_, log_path(), {.max_bytes = 10000}); }).find("at least"),
      std::string::npos);
  VerdictLog log(*model_, log_path());
  EXPECT_NE(message_of([&] { VerdictLog(*model_, log_path()); }).find("in use"), std::string::npos);
  const auto other = Model::load(folder_->path() / "draft", {.threads = 1});
  const GenerateOptions options{.max_tokens = 1, .verdict_log = &log};
  EXPECT_THROW(Generator(other).generate(kPrompt, options), UsageError);
}

TEST_F(Recording, StrangeLogits) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const VerdictLogFormat format{.n_vocabulary = 5, .n_kept = 3, .vocabulary = {}};
  const std::vector<TokenId> prompt = {1};
  VerdictRecorder recorder(format, prompt, 10);
  recorder.add(4, std::vector<float>{-kInf, -kInf, std::nanf(""), 0, 0});
  // Two tokens with a half each; the row is padded with impossible tokens.
  EXPECT_EQ(recorder.text().kept_ids, (std::vector<TokenId>{3, 4, 0}));
  EXPECT_FLOAT_EQ(recorder.text().kept_logprobs[1], -std::log(2.0F));
  EXPECT_EQ(recorder.text().kept_logprobs[2], -kInf);
  EXPECT_EQ(recorder.text().rest_logprobs[0], -kInf);
  // No distribution: the record ends here.
  recorder.add(1, std::vector<float>{0, kInf, 0, 0, 0});
  recorder.add(1, std::vector<float>{0, 1, 0, 0, 0});
  EXPECT_EQ(recorder.text().n_generated(), 1);
  EXPECT_EQ(recorder.text().tokens.size(), 2U);
  VerdictRecorder full(format, prompt, 0);
  full.add(1, std::vector<float>{0, 1, 0, 0, 0});
  EXPECT_EQ(full.text().n_generated(), 0);
}

}  // namespace
}  // namespace outrider
