// SPDX-License-Identifier: Apache-2.0
#include "train/batches/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "outrider/error.h"
#include "tests/support/models/tiny_tokenizer.h"
#include "tests/support/temporary_directory.h"

namespace outrider::train {
namespace {

std::vector<TokenId> counting(int n) {
  std::vector<TokenId> stream(static_cast<std::size_t>(n));
  std::iota(stream.begin(), stream.end(), 0);
  return stream;
}

TEST(WindowSource, ABatchDependsOnItsNumberAlone) {
  const BatchShape shape{.n_sequences = 3, .length = 10, .seed = 7};
  WindowSource in_order(counting(1000), shape);
  std::vector<Batch> batches;
  for (int number = 0; number < 100; ++number) batches.push_back(in_order.batch(number));
  WindowSource jumping(counting(1000), shape);
  for (const int number : {57, 3, 99, 0}) {
    EXPECT_EQ(jumping.batch(number).tokens, batches[static_cast<std::size_t>(number)].tokens);
  }
  WindowSource other(counting(1000), {.n_sequences = 3, .length = 10, .seed = 8});
  EXPECT_NE(other.batch(0).tokens, batches[0].tokens);
}

TEST(WindowSource, EveryEpochCoversTheStreamOnce) {
  WindowSource source(counting(1000), {.n_sequences = 1, .length = 10, .seed = 1});
  // 99 windows per epoch; the shift leaves out up to ten tokens at either end.
  std::vector<std::vector<TokenId>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::set<TokenId> seen;
    std::vector<TokenId> order;
    for (int window = 0; window < 99; ++window) {
      const Batch batch = source.batch(epoch * 99 + window);
      ASSERT_EQ(batch.tokens.size(), 10u);
      for (std::size_t i = 1; i < 10; ++i) EXPECT_EQ(batch.tokens[i], batch.tokens[i - 1] + 1);
      EXPECT_EQ(batch.weights[0], 0);
      EXPECT_EQ(batch.weights[9], 1);
      seen.insert(batch.tokens.begin(), batch.tokens.end());
      order.push_back(batch.tokens[0]);
    }
    EXPECT_EQ(seen.size(), 990u);
    orders.push_back(order);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
}

TEST(WindowSource, ItsFingerprintIsThatOfItsTokens) {
  const BatchShape shape{.n_sequences = 3, .length = 10, .seed = 7};
  std::vector<TokenId> changed = counting(1000);
  std::swap(changed[500], changed[501]);
  const std::uint64_t fingerprint = WindowSource(counting(1000), shape).fingerprint();
  EXPECT_EQ(WindowSource(counting(1000), {.n_sequences = 1, .length = 5}).fingerprint(),
            fingerprint);
  EXPECT_NE(WindowSource(changed, shape).fingerprint(), fingerprint);
  EXPECT_NE(WindowSource(counting(999), shape).fingerprint(), fingerprint);
}

TEST(ExampleSource, ItsFingerprintTellsPromptsFromCompletions) {
  const auto source = [](std::vector<TokenId> tokens, int n_prompt) {
    return ExampleSource({{.tokens = std::move(tokens), .n_prompt = n_prompt}},
                         {.n_sequences = 1, .length = 8}, 0)
        .fingerprint();
  };
  EXPECT_EQ(source({1, 2, 3}, 1), source({1, 2, 3}, 1));
  EXPECT_NE(source({1, 2, 3}, 1), source({1, 2, 3}, 2));
  EXPECT_NE(source({1, 2, 3}, 1), source({1, 2, 4}, 1));
}

TEST(WindowSource, RefusesAStreamShorterThanAWindow) {
  EXPECT_THROW(WindowSource(counting(9), {.n_sequences = 1, .length = 10}), Error);
  EXPECT_THROW(WindowSource(counting(9), {.n_sequences = 0, .length = 2}), Error);
  WindowSource just(counting(10), {.n_sequences = 1, .length = 10});
  EXPECT_EQ(just.batch(5).tokens, counting(10));
}

class TextFiles : public ::testing::Test {
 protected:
  TextFiles() {
    write("tokenizer.json", test::tokenizer_json(test::make_tiny_vocabulary(300)));
    tokenizer_ = Tokenizer::load(directory_.path());
  }
  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(directory_.path() / name, std::ios::binary) << text;
    return directory_.path() / name;
  }
  const test::TemporaryDirectory directory_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(TextFiles, DocumentsAreEncodedOneByOne) {
  const auto file = write("text", "one two<END>\n three<END>  \n<END>four");
  const std::filesystem::path files[] = {file};
  const auto stream = encode_text_files(files, *tokenizer_, "<END>");
  std::vector<TokenId> expected;
  for (const char* document : {"one two", "three", "four"}) {
    const auto ids = tokenizer_->encode(document, true);
    expected.insert(expected.end(), ids.begin(), ids.end());
    if (tokenizer_->eos_token() != kNoToken && expected.back() != tokenizer_->eos_token()) {
      expected.push_back(tokenizer_->eos_token());
    }
  }
  EXPECT_EQ(stream, expected);
}

TEST_F(TextFiles, EmptyOrMissingIsAnError) {
  for (const auto& file : {write("blank", " \n\t "), write("empty", ""), write("latin", "caf\xe9"),
                           directory_.path() / "missing", directory_.path()}) {
    const std::filesystem::path files[] = {file};
    EXPECT_THROW(encode_text_files(files, *tokenizer_, ""), Error) << file;
  }
}

TEST_F(TextFiles, ExamplesCountOnTheirCompletions) {
  const auto file = write("examples.jsonl",
                          "{\"prompt\": \"a b\", \"completion\": \" c\"}\n\n"
                          "{\"prompt\": \"a\", \"completion\": \" b c d e f g\"}\n");
  const auto examples = read_examples(file, *tokenizer_);
  ASSERT_EQ(examples.size(), 2u);
  const auto prompt = tokenizer_->encode("a b", true);
  EXPECT_EQ(examples[0].n_prompt, static_cast<int>(prompt.size()));
  EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), examples[0].tokens.begin()));

  ExampleSource source(examples, {.n_sequences = 2, .length = 64, .seed = 1}, 0);
  const Batch batch = source.batch(0);
  double counted = 0;
  for (const float weight : batch.weights) counted += weight;
  double completions = 0;
  for (const Example& example : examples) {
    completions += static_cast<double>(example.tokens.size()) - example.n_prompt;
  }
  EXPECT_EQ(counted, completions);
  EXPECT_EQ(static_cast<std::size_t>(batch.length),
            std::max(examples[0].tokens.size(), examples[1].tokens.size()));
}

// Recorded texts are kept unchanged: no special token is added, not even at the end.
TEST_F(TextFiles, ExamplesMayBeTokens) {
  const auto prompt = tokenizer_->encode("a b", false);
  const auto line = [&](const std::string& text) {
    std::string ids;
    for (const TokenId id : prompt) ids += (ids.empty() ? "" : ", ") + std::to_string(id);
    return "{\"prompt\": \"" + text + "\", \"completion\": \"\", \"prompt_tokens\": [" + ids +
           "], \"completion_tokens\": [3, 299]}\n";
  };
  const auto file = write("tokens.jsonl", line(tokenizer_->decode(prompt, true)));
  const auto examples = read_examples(file, *tokenizer_);
  ASSERT_EQ(examples.size(), 1u);
  auto expected = prompt;
  expected.insert(expected.end(), {3, 299});
  EXPECT_EQ(examples[0].tokens, expected);
  EXPECT_EQ(examples[0].n_prompt, static_cast<int>(prompt.size()));
  EXPECT_THROW(read_examples(write("other.jsonl", line("b a")), *tokenizer_), Error);
}

TEST_F(TextFiles, MalformedExamplesNameTheirLine) {
  const std::map<std::string, std::string> broken = {
      {R"({"prompt": "a", "completion": "b", "prompt_tokens": [3]})", "line 1"},
      {R"({"prompt": "a", "completion": "b", "prompt_tokens": [3], "completion_tokens": [999]})",
       "line 1"},
      {R"({"prompt": "", "completion": "b", "prompt_tokens": [], "completion_tokens": [3]})",
       "line 1"},
      {"{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"prompt\": \"a\"}\n", "line 2"},
      {"\n[1]\n", "line 2"},
      {"{\"prompt\": 3, \"completion\": \"b\"}", "line 1"},
      {"", "at least one line"}};
  for (const auto& [text, word] : broken) {
    try {
      read_examples(write("broken.jsonl", text), *tokenizer_);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace outrider::train
