// SPDX-License-Identifier: Apache-2.0
// Generation with an encoder-decoder: prompts are not confused, and drafts do not change bits. The
// model is a tiny T5 whose continuation transformers wrote (tests/golden/make/make_t5_models.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "outrider/generate.h"
#include "tests/support/goldens/golden_models.h"

namespace outrider {
namespace {

using test::GoldenModel;
using Ids = std::vector<TokenId>;

std::string path_of_model() { return test::golden_directory("t5_plain") / "model.gguf"; }

std::shared_ptr<const Model> load() {
  return Model::load(path_of_model(), {.weights = "f32", .kv = "f32", .threads = 1});
}

Ids without_first(const Ids& ids) { return {ids.begin() + 1, ids.end()}; }

// Requests of each form: three texts with different encoder inputs, and one with a given beginning.
std::vector<GenerateRequest> some_requests(const GoldenModel& golden) {
  const GenerateOptions options{.max_tokens = 40, .ignore_eos = true, .keep_logits = true};
  std::vector<GenerateRequest> requests;
  for (const std::size_t n : {5, 17, 40}) {
    requests.push_back({.prompt = Ids(golden.encoder_ids.begin(),
                                      golden.encoder_ids.begin() + static_cast<std::ptrdiff_t>(n)),
                        .options = options});
  }
  requests.push_back({.prompt = without_first(golden.ids),
                      .options = options,
                      .encoder_prompt = golden.encoder_ids});
  return requests;
}

TEST(EncoderDecoder, ContinuesAsTransformersDoes) {
  const GoldenModel golden("t5_plain");
  Generator generator(load());
  const GenerateRequest request{.prompt = without_first(golden.ids),
                                .options = {.max_tokens = 32, .ignore_eos = true},
                                .encoder_prompt = golden.encoder_ids};
  EXPECT_EQ(generator.generate({&request, 1}).front().ids, golden.greedy);
}

TEST(EncoderDecoder, ReadsThePromptWhereThereIsNoOther) {
  const GoldenModel golden("t5_plain");
  Generator generator(load());
  const GenerateOptions options{.max_tokens = 20, .ignore_eos = true};
  const GenerateRequest of_one = {.prompt = golden.encoder_ids, .options = options};
  const GenerateRequest of_two = {
      .prompt = {}, .options = options, .encoder_prompt = golden.encoder_ids};
  EXPECT_EQ(generator.generate({&of_one, 1}).front().ids,
            generator.generate({&of_two, 1}).front().ids);
}

class EncoderDecoderDrafts : public ::testing::TestWithParam<std::string> {};

// Ids and logits are those of plain decoding alone; some drafts are accepted.
TEST_P(EncoderDecoderDrafts, HaveTheBitsOfPlainDecoding) {
  const GoldenModel golden("t5_plain");
  const auto model = load();
  std::vector<GenerateRequest> requests = some_requests(golden);
  Generator plain(model);
  std::vector<GenerateResult> expected;
  for (const GenerateRequest& request : requests) {
    expected.push_back(std::move(plain.generate({&request, 1}).front()));
  }
  ASSERT_NE(expected[0].ids, expected[1].ids);
  std::string drafter = GetParam();
  if (const std::size_t at = drafter.find("PATH"); at != std::string::npos) {
    drafter.replace(at, 4, path_of_model());
  }
  const bool grows = drafter.starts_with("model");
  Generator drafting(model, {.drafter = drafter,
                             .tree = grows ? "widths:3,2,1,1" : "",
                             .drafter_options = {.weights = "int8", .threads = 1}});
  const std::vector<GenerateResult> results = drafting.generate(requests);
  std::int64_t n_accepted = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].ids, expected[i].ids) << i;
    ASSERT_EQ(results[i].logits.size(), expected[i].logits.size());
    EXPECT_EQ(std::memcmp(results[i].logits.data(), expected[i].logits.data(),
                          results[i].logits.size() * sizeof(float)),
              0)
        << i;
    n_accepted += results[i].statistics.accepted;
  }
  EXPECT_GT(n_accepted, 0);
}

INSTANTIATE_TEST_SUITE_P(All, EncoderDecoderDrafts,
                         ::testing::Values("suffix", "model:PATH", "layerskip:layers=1",
                                           "staged:model:PATH+suffix"));

// A kept text is reused only for the same encoder input.
TEST(EncoderDecoder, KeptTextsGoByWhatTheEncoderRead) {
  const GoldenModel golden("t5_plain");
  const auto model = load();
  std::vector<GenerateRequest> requests = some_requests(golden);
  GenerateRequest& request = requests.back();
  Generator keeping(model);
  keeping.keep_last_text(true);
  (void)keeping.generate({&request, 1});
  const GenerateResult again = std::move(keeping.generate({&request, 1}).front());
  EXPECT_EQ(again.statistics.reused, static_cast<std::int64_t>(golden.ids.size()) - 1);
  std::reverse(request.encoder_prompt.begin(), request.encoder_prompt.end());
  const GenerateResult other = std::move(keeping.generate({&request, 1}).front());
  EXPECT_EQ(other.statistics.reused, 0);
  const GenerateResult fresh = std::move(Generator(model).generate({&request, 1}).front());
  EXPECT_EQ(other.logits, fresh.logits);
  EXPECT_NE(other.ids, again.ids);
}

template <typename Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(EncoderDecoder, RefusesWhatDoesNotFit) {
  const GoldenModel golden("t5_plain");
  const auto model = load();
  const GenerateRequest empty{.prompt = {}, .options = {}};
  EXPECT_NE(message_of([&] {
              (void)Generator(model).generate({&empty, 1});
            }).find("encoder prompt"),
            std::string::npos);
  const auto decoder =
      Model::load(test::golden_directory("llama_plain") / "model.gguf", {.threads = 1});
  const GenerateRequest for_two{.prompt = {3}, .options = {}, .encoder_prompt = golden.encoder_ids};
  EXPECT_NE(message_of([&] {
              (void)Generator(decoder).generate({&for_two, 1});
            }).find("the model is a decoder"),
            std::string::npos);
  const std::string other = test::golden_directory("llama_plain") / "model.gguf";
  EXPECT_NE(message_of([&] {
              (void)Generator(model, {.drafter = "model:" + other});
            }).find("an encoder-decoder, as the target is"),
            std::string::npos);
}

}  // namespace
}  // namespace outrider
