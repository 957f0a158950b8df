// SPDX-License-Identifier: Apache-2.0
// The public interface on a tiny random pair: replay, all kinds of stops, edge cases, errors.
#include "outrider/generate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/models/tiny_tokenizer.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

class Generation : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() /
              ("outrider_generate_test_" +
               std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "_" +
               std::to_string(::getpid()));
    test::write_tiny_pair(folder_);
    model_ = Model::load(folder_ / "target", {.threads = 1});
  }
  static void TearDownTestSuite() {
    model_.reset();
    fs::remove_all(folder_);
  }

  static Generator make(int length, const std::string& verify = "exact") {
    return Generator(model_, {.drafter = "model:" + (folder_ / "draft").string(),
                              .tree = "chain:length=" + std::to_string(length),
                              .verify = verify,
                              .drafter_options = {.threads = 1}});
  }
  static Generator make(const std::string& tree, const std::string& verify) {
    return Generator(model_, {.drafter = "model:" + (folder_ / "draft").string(),
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

  static inline fs::path folder_;
  static inline std::shared_ptr<const Model> model_;
};

constexpr const char* kPrompt = "A small test.";

TEST_F(Generation, CoupledIsPlainSamplingAndExactReplays) {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{7}}) {
    const GenerateOptions options{.max_tokens = 60,
                                  .sampling = {.temperature = 1, .repetition_penalty = 1.1},
                                  .seed = seed,
                                  .ignore_eos = true,
                                  .keep_logits = true};
    const GenerateResult plain = Generator(model_).generate(kPrompt, options);
    EXPECT_EQ(plain.ids.size(), 60U);
    for (const int length : {1, 3, 8}) {
      const GenerateResult coupled = make(length, "coupled").generate(kPrompt, options);
      EXPECT_EQ(coupled.ids, plain.ids);
      EXPECT_EQ(coupled.logits, plain.logits);
      EXPECT_EQ(coupled.text, plain.text);
      EXPECT_GT(coupled.statistics.tau(), 1);
      for (const char* verify : {"exact", "block"}) {
        const GenerateResult once = make(length, verify).generate(kPrompt, options);
        EXPECT_EQ(make(length, verify).generate(kPrompt, options).ids, once.ids);
      }
    }
  }
}

constexpr const char* kTrees[] = {"widths:3,2,2", "widths:2,2,2,siblings=with", "static:eagle1",
                                  "static:medusa,siblings=top", "dynamic:total=20,depth=5,topk=4"};

// Compares ids and their logits bit for bit: greedy under every verification, and sampled with the
// seed under `coupled`.
TEST_F(Generation, TreesGivePlainOutput) {
  for (const double temperature : {0.0, 1.0}) {
    const GenerateOptions options{
        .max_tokens = 60,
        .sampling = {.temperature = temperature, .repetition_penalty = 1.1},
        .seed = 3,
        .ignore_eos = true,
        .keep_logits = true};
    const GenerateResult plain = Generator(model_).generate(kPrompt, options);
    for (const char* tree : kTrees) {
      for (const char* verify : {"coupled", "exact", "traversal"}) {
        const GenerateResult result = make(tree, verify).generate(kPrompt, options);
        EXPECT_GT(result.statistics.tau(), 1);
        EXPECT_EQ(result.ids.size(), plain.ids.size());
        if (temperature > 0 && verify != std::string("coupled")) {
          EXPECT_EQ(make(tree, verify).generate(kPrompt, options).ids, result.ids);
          continue;
        }
        EXPECT_EQ(result.ids, plain.ids) << tree << " " << verify;
        ASSERT_EQ(result.logits.size(), plain.logits.size());
        EXPECT_EQ(std::memcmp(result.logits.data(), plain.logits.data(),
                              plain.logits.size() * sizeof(float)),
                  0)
            << tree << " " << verify;
      }
    }
  }
}

TEST_F(Generation, CountsAddUp) {
  const GenerateOptions options{.max_tokens = 50, .ignore_eos = true};
  const GenerateResult plain = Generator(model_).generate(kPrompt, options);
  EXPECT_EQ(plain.statistics.target_passes, 50);
  EXPECT_EQ(plain.statistics.drafted, 0);
  EXPECT_EQ(plain.statistics.drafter_passes, 0);
  EXPECT_EQ(plain.statistics.tau(), 1);
  Generator generator = make(4);
  for (int run = 0; run < 2; ++run) {  // a generator starts every text from scratch
    const GenerateResult result = generator.generate(kPrompt, options);
    const GenerateStatistics& statistics = result.statistics;
    EXPECT_EQ(result.ids, plain.ids);
    EXPECT_EQ(statistics.emitted, 50);
    EXPECT_EQ(statistics.emitted, statistics.accepted + statistics.target_passes);
    EXPECT_EQ(statistics.drafter_passes, statistics.drafted);
    EXPECT_EQ(static_cast<std::int64_t>(result.accepted_per_round.size()),
              statistics.target_passes);
    EXPECT_GT(statistics.accepted, 0);
    EXPECT_LT(statistics.accepted, statistics.drafted);
    EXPECT_EQ(result.finish_reason, FinishReason::length);
  }
}

// Confidence uses the drafter's raw probability: temperature 0 makes no draft certain.
TEST_F(Generation, ConfidenceShortensGreedyDrafts) {
  const GenerateOptions options{.max_tokens = 50, .ignore_eos = true};
  const GenerateResult sure = make(4).generate(kPrompt, options);
  Generator doubtful(model_, {.drafter = "model:" + (folder_ / "draft").string() + ",confidence=1",
                              .tree = "chain:length=4",
                              .drafter_options = {.threads = 1}});
  const GenerateResult result = doubtful.generate(kPrompt, options);
  EXPECT_EQ(result.ids, sure.ids);
  EXPECT_LT(result.statistics.drafted, sure.statistics.drafted);
  // Every draft ends after its first token, since a random model is never certain.
  EXPECT_LE(result.statistics.drafted, result.statistics.target_passes);
}

TEST_F(Generation, NoTokensAskedForGivesNone) {
  for (const int length : {0, 5}) {
    Generator generator = length == 0 ? Generator(model_) : make(length);
    const GenerateResult result = generator.generate(kPrompt, {.max_tokens = 0});
    EXPECT_TRUE(result.ids.empty());
    EXPECT_EQ(result.text, "");
    EXPECT_EQ(result.finish_reason, FinishReason::length);
    EXPECT_EQ(result.statistics.target_passes, 0);
    EXPECT_EQ(result.statistics.tau(), 0);
  }
}

// An end token anywhere in a draft ends the text there, as in plain decoding: every token of a
// plain text is made a stop token in turn.
TEST_F(Generation, StopTokensInMidDraft) {
  const GenerateOptions options{.max_tokens = 40, .ignore_eos = true};
  const GenerateResult plain = Generator(model_).generate(kPrompt, options);
  int in_mid_draft = 0;
  for (const char* tree : {"chain:length=2", "chain:length=5", "chain:length=8", "widths:3,2,2",
                           "static:eagle1", "dynamic:total=20,depth=5,topk=4"}) {
    Generator generator = make(tree, "exact");
    for (const TokenId stop : plain.ids) {
      GenerateOptions stopping = options;
      stopping.stop_tokens = {stop};
      const GenerateResult expected = Generator(model_).generate(kPrompt, stopping);
      const GenerateResult result = generator.generate(kPrompt, stopping);
      EXPECT_EQ(result.ids, expected.ids);
      EXPECT_EQ(result.ids.back(), stop);
      EXPECT_EQ(result.text, expected.text);
      EXPECT_EQ(result.finish_reason, FinishReason::stop);
      EXPECT_EQ(result.statistics.emitted, static_cast<std::int64_t>(result.ids.size()));
      if (result.statistics.accepted > 0 && result.accepted_per_round.back() > 0) ++in_mid_draft;
    }
  }
  EXPECT_GT(in_mid_draft, 10);
}

// A stop string anywhere in the text, across tokens and rounds.
TEST_F(Generation, StopStringsAcrossRounds) {
  const GenerateOptions options{.max_tokens = 40, .ignore_eos = true};
  const std::string text = Generator(model_).generate(kPrompt, options).text;
  ASSERT_GT(text.size(), 20U);
  for (const int length : {0, 1, 5}) {
    Generator generator = length == 0 ? Generator(model_) : make(length);
    for (std::size_t at = 0; at + 4 <= text.size(); ++at) {
      const std::string stop = text.substr(at, 4);
      if ((stop[0] & 0xc0) == 0x80) continue;  // begins inside a character
      GenerateOptions stopping = options;
      stopping.stop_strings = {stop};
      std::string streamed;
      stopping.on_token = [&streamed](const TokenEvent& event) { streamed += event.text; };
      const GenerateResult result = generator.generate(kPrompt, stopping);
      EXPECT_EQ(result.text, text.substr(0, text.find(stop)));
      EXPECT_EQ(streamed, result.text);
      EXPECT_EQ(result.finish_reason, FinishReason::stop);
    }
  }
}

TEST_F(Generation, StreamedTextIsTheText) {
  for (const int length : {0, 5}) {
    Generator generator = length == 0 ? Generator(model_) : make(length);
    std::string streamed;
    std::vector<TokenId> ids;
    int n_accepted = 0;
    int n_corrected = 0;
    GenerateOptions options{.max_tokens = 80, .sampling = {.temperature = 1.5}, .ignore_eos = true};
    options.on_token = [&](const TokenEvent& event) {
      streamed += event.text;
      ids.push_back(event.id);
      if (event.origin == TokenOrigin::accepted) ++n_accepted;
      if (event.origin == TokenOrigin::corrected) ++n_corrected;
      if (length == 0) {
        EXPECT_EQ(event.origin, TokenOrigin::plain);
      }
    };
    const GenerateResult result = generator.generate(kPrompt, options);
    EXPECT_EQ(ids, result.ids);
    EXPECT_EQ(n_accepted, result.statistics.accepted);
    EXPECT_EQ(n_corrected, result.statistics.rejected);
    // Only a character unfinished at the very end may come after the last token.
    EXPECT_EQ(result.text.substr(0, streamed.size()), streamed);
    EXPECT_LE(result.text.size() - streamed.size(), 3U);
    EXPECT_EQ(result.text, model_->tokenizer().decode(result.ids));
  }
}

TEST_F(Generation, ContextEndsTheText) {
  const int context = model_->summary().context_length;
  GenerateRequest request{.prompt = std::vector<TokenId>(static_cast<std::size_t>(context) - 3, 70),
                          .options = {.max_tokens = 100, .ignore_eos = true}};
  for (const int length : {0, 8}) {
    Generator generator = length == 0 ? Generator(model_) : make(length);
    const auto results = generator.generate({&request, 1});
    EXPECT_EQ(results[0].ids.size(), 3U);
    EXPECT_EQ(results[0].finish_reason, FinishReason::length);
  }
  request.prompt.resize(static_cast<std::size_t>(context), 70);
  EXPECT_NE(message_of([&] {
              Generator(model_).generate({&request, 1});
            }).find("fewer tokens than the model's context of " + std::to_string(context)),
            std::string::npos);
}

TEST_F(Generation, CancelEndsAfterTheRound) {
  std::atomic<bool> cancel{false};
  GenerateOptions options{.max_tokens = 200, .ignore_eos = true, .cancel = &cancel};
  int n_tokens = 0;
  options.on_token = [&](const TokenEvent&) { cancel = ++n_tokens >= 10; };
  const GenerateResult result = make(3).generate(kPrompt, options);
  EXPECT_EQ(result.finish_reason, FinishReason::cancelled);
  EXPECT_GE(result.ids.size(), 10U);
  EXPECT_LE(result.ids.size(), 14U);
}

// Cancelling one text of a batch does not affect the others.
TEST_F(Generation, CancelledBeforeTheFirstToken) {
  const std::atomic<bool> cancel{true};
  const std::vector<TokenId> prompt(600, 70);  // more than one step of prefill
  const GenerateOptions options{.max_tokens = 6, .ignore_eos = true};
  GenerateOptions cancelled = options;
  cancelled.cancel = &cancel;
  const GenerateRequest requests[] = {{prompt, cancelled}, {prompt, options}};
  for (const int length : {0, 4}) {
    Generator generator = length == 0 ? Generator(model_) : make(length);
    const auto results = generator.generate(requests);
    EXPECT_EQ(results[0].finish_reason, FinishReason::cancelled);
    EXPECT_TRUE(results[0].ids.empty());
    EXPECT_EQ(results[0].text, "");
    EXPECT_EQ(results[0].statistics.target_passes, 0);
    EXPECT_EQ(results[1].ids, Generator(model_).generate({&requests[1], 1})[0].ids);
  }
}

TEST_F(Generation, OneBadRequestIsRefusedBeforeTheOthersBegin) {
  int n_tokens = 0;
  const GenerateOptions options{
      .max_tokens = 6, .ignore_eos = true, .on_token = [&](const TokenEvent&) { ++n_tokens; }};
  const GenerateRequest good{.prompt = {0, 70}, .options = options};
  std::vector<GenerateRequest> bad(5, good);
  bad[0].prompt.clear();
  bad[1].prompt = {model_->summary().vocabulary_size};
  bad[2].prompt.assign(static_cast<std::size_t>(model_->summary().context_length), 70);
  bad[3].options.sampling.temperature = -1;
  bad[4].options.max_tokens = -1;
  Generator generator = make(4);
  for (const GenerateRequest& one : bad) {
    const GenerateRequest requests[] = {good, one};
    EXPECT_THROW(generator.generate(requests), Error);
  }
  EXPECT_EQ(n_tokens, 0);
}

// An exception of the caller's function is passed on, and the generator works as before.
TEST_F(Generation, AThrowingCallbackEndsTheBatchAlone) {
  const GenerateOptions options{.max_tokens = 20, .ignore_eos = true};
  GenerateOptions throwing = options;
  throwing.on_token = [n_tokens = 0](const TokenEvent&) mutable {
    if (++n_tokens == 7) throw std::runtime_error("enough");
  };
  const GenerateRequest good{.prompt = {0, 70, 71}, .options = options};
  const GenerateRequest requests[] = {good, {.prompt = {0, 72}, .options = throwing}};
  Generator generator = make(4);
  EXPECT_THROW(generator.generate(requests), std::runtime_error);
  EXPECT_EQ(generator.generate({&good, 1})[0].ids, make(4).generate({&good, 1})[0].ids);
}

TEST_F(Generation, PromptsThatCannotBe) {
  Generator generator(model_);
  GenerateRequest request;
  EXPECT_EQ(message_of([&] {
              generator.generate({&request, 1});
            }),
            "[generate] prompt: expected at least one token, got none");
  request.prompt = {0, model_->summary().vocabulary_size};
  EXPECT_NE(message_of([&] {
              generator.generate({&request, 1});
            }).find("token ids below"),
            std::string::npos);
  request.prompt = {0, -1};
  EXPECT_NE(message_of([&] {
              generator.generate({&request, 1});
            }).find("got -1"),
            std::string::npos);
  EXPECT_NO_THROW(generator.generate("", {.max_tokens = 2}));  // the beginning-of-text token alone
  EXPECT_NO_THROW(generator.generate("\xff\xc3", {.max_tokens = 2}));
}

// Output matrices are often padded with rows for ids without a token. Such an id has no text. A
// drafter with the same padding fits.
TEST_F(Generation, IdsWithoutTokens) {
  test::TinyVocabulary vocabulary = test::make_tiny_vocabulary(model_->summary().vocabulary_size);
  const auto padding = static_cast<TokenId>(vocabulary.tokens.size()) - 1;
  vocabulary.tokens.pop_back();
  if (vocabulary.n_unused == 0) vocabulary.merges.pop_back();
  const fs::path folder = folder_ / "padded";
  fs::create_directory(folder);
  for (const char* name : {"target", "draft"}) {
    fs::copy(folder_ / name, folder / name, fs::copy_options::recursive);
    std::ofstream(folder / name / "tokenizer.json") << test::tokenizer_json(vocabulary);
  }
  const auto padded = Model::load(folder / "target", {.threads = 1});
  ASSERT_FALSE(padded->tokenizer().has(padding));
  Generator generator(padded, {.drafter = "model:" + (folder / "draft").string(),
                               .drafter_options = {.threads = 1}});
  const GenerateResult result = generator.generate(
      kPrompt,
      {.max_tokens = 6, .sampling = {.logit_bias = {{padding, 100.0F}}}, .ignore_eos = true});
  EXPECT_EQ(result.ids, std::vector<TokenId>(6, padding));
  EXPECT_EQ(result.text, "");
}

// Bytes held back for an unfinished character are released once, although a text ended by its last
// token is finished as well.
TEST_F(Generation, AnUnfinishedCharacterAtAStop) {
  const TokenId lead = model_->tokenizer().encode("\u00e9", false).front();  // byte C3 alone
  ASSERT_EQ(model_->tokenizer().decode({&lead, 1}), "\uFFFD");
  const TokenId end = model_->tokenizer().encode("a", false).front();
  std::string streamed;
  // First one token, then, as that is penalised, the other.
  const GenerateResult result = Generator(model_).generate(
      kPrompt,
      {.max_tokens = 6,
       .sampling = {.frequency_penalty = 200, .logit_bias = {{lead, 100.0F}, {end, 50.0F}}},
       .stop_tokens = {end},
       .on_token = [&](const TokenEvent& event) { streamed += event.text; }});
  EXPECT_EQ(result.ids, (std::vector<TokenId>{lead, end}));
  EXPECT_EQ(result.text, "\uFFFD");
  EXPECT_EQ(streamed, result.text);
}

// The last token leaves a character unfinished, and a stop string matches the U+FFFD that replaces
// it.
TEST_F(Generation, AStopStringInWhatWasHeldBack) {
  const TokenId lead = model_->tokenizer().encode("\u00e9", false).front();  // byte C3 alone
  GenerateOptions options{.max_tokens = 1, .sampling = {.logit_bias = {{lead, 100.0F}}}};
  for (const bool stops : {false, true}) {
    if (stops) options.stop_strings = {"\uFFFD"};
    const GenerateResult result = Generator(model_).generate(kPrompt, options);
    EXPECT_EQ(result.ids, std::vector<TokenId>{lead});
    EXPECT_EQ(result.text, stops ? "" : "\uFFFD");
    EXPECT_EQ(result.finish_reason, stops ? FinishReason::stop : FinishReason::length);
  }
}

TEST_F(Generation, OptionsThatCannotBe) {
  const auto speculate = [&](const SpeculationOptions& options) {
    return message_of([&] { Generator(model_, options); });
  };
  const std::string draft = "model:" + (folder_ / "draft").string();
  EXPECT_NE(speculate({.drafter = "ghost"}).find("one of none, model"), std::string::npos);
  EXPECT_NE(speculate({.drafter = "model"}).find("expected model:PATH"), std::string::npos);
  EXPECT_NE(speculate({.drafter = "model:/nowhere/at/all"}).find("/nowhere/at/all"),
            std::string::npos);
  EXPECT_NE(speculate({.drafter = draft + ",confidence=2"}).find("a number from 0 to 1"),
            std::string::npos);
  EXPECT_NE(speculate({.drafter = draft, .rule = "lucky"}).find("one of exact"), std::string::npos);
  EXPECT_NE(speculate({.drafter = draft, .tree = "bush"}).find("one of chain"), std::string::npos);
  // Block verification accepts chains, whatever their spec.
  EXPECT_NE(speculate({.drafter = draft, .tree = "widths:2,2", .verify = "block"})
                .find("expected a chain, got the tree widths:2,2"),
            std::string::npos);
  EXPECT_EQ(speculate({.drafter = draft, .tree = "widths:1,1", .verify = "block"}), "no error");
  EXPECT_EQ(message_of([&] { check_speculation({.drafter = "model:/not/loaded"}); }), "no error");
  EXPECT_NE(message_of([&] { check_speculation({.tree = "bush"}); }), "no error");
  EXPECT_NE(speculate({.drafter = draft, .tree = "chain:length=0"}).find("from 1 to"),
            std::string::npos);
  // A value where none is allowed is refused: chain:8 would otherwise draft 5 tokens.
  EXPECT_NE(speculate({.drafter = draft, .tree = "chain:8"}).find("key=value after the colon"),
            std::string::npos);
  EXPECT_NE(speculate({.drafter = draft, .rule = "exact:0.3"}).find("got 0.3"), std::string::npos);
  EXPECT_NE(speculate({.drafter = "none:ghost"}).find("got ghost"), std::string::npos);
  EXPECT_NE(speculate({.drafter = draft, .verify = "maybe"})
                .find("one of exact, block, traversal, coupled"),
            std::string::npos);
  const auto load = [&](const ModelOptions& options) {
    return message_of([&] { Model::load(folder_ / "target", options); });
  };
  EXPECT_NE(load({.weights = "int3"}).find("one of f32, bf16, int8, int4"), std::string::npos);
  EXPECT_NE(load({.kv = "f8"}).find("one of f32, bf16, int8"), std::string::npos);
  EXPECT_NE(load({.threads = -1}).find("0 or more"), std::string::npos);
  EXPECT_NE(load({.kernels = "abacus"}).find("scalar"), std::string::npos);
  const auto sample = [&](const SamplingParams& sampling) {
    return message_of([&] { Generator(model_).generate(kPrompt, {.sampling = sampling}); });
  };
  EXPECT_NE(sample({.temperature = -1}), "no error");
  EXPECT_NE(sample({.top_p = 0}), "no error");
  EXPECT_NE(sample({.top_k = -1}), "no error");
  EXPECT_NE(sample({.repetition_penalty = 0}), "no error");
  EXPECT_NE(message_of([&] { Generator(model_).generate(kPrompt, {.max_tokens = -1}); }),
            "no error");
}

TEST(GenerateNames, AreTheEnumerators) {
  EXPECT_STREQ(name_of(FinishReason::stop), "stop");
  EXPECT_STREQ(name_of(FinishReason::length), "length");
  EXPECT_STREQ(name_of(FinishReason::time), "time");
  EXPECT_STREQ(name_of(FinishReason::cancelled), "cancelled");
  EXPECT_STREQ(name_of(TokenOrigin::plain), "plain");
  EXPECT_STREQ(name_of(TokenOrigin::accepted), "accepted");
  EXPECT_STREQ(name_of(TokenOrigin::corrected), "corrected");
  EXPECT_STREQ(name_of(TokenOrigin::bonus), "bonus");
}

}  // namespace
}  // namespace outrider
