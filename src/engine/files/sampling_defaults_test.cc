// SPDX-License-Identifier: Apache-2.0
// The sampling defaults that a model's files recommend.
#include "outrider/sampling_defaults.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/test_files.h"
#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

class ModelDefaults : public ::testing::Test {
 protected:
  SamplingDefaults of_json(std::string_view text) const {
    std::ofstream(directory_.path() / "generation_config.json") << text;
    return read_sampling_defaults(directory_.path());
  }
  SamplingDefaults of_gguf(const test::Gguf& builder) const {
    const std::filesystem::path file = directory_.path() / "model.gguf";
    const test::Bytes bytes = builder.bytes();
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return read_sampling_defaults(file);
  }
  // The error's message; empty if none.
  std::string refusal_of(std::string_view text) const {
    try {
      (void)of_json(text);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  test::TemporaryDirectory directory_;
};

// As in generation_config.json of Qwen2.5's instruct models.
TEST_F(ModelDefaults, AreThoseOfGenerationConfig) {
  const SamplingDefaults defaults = of_json(
      R"({"do_sample": true, "repetition_penalty": 1.05, "temperature": 0.7, "top_p": 0.8,
          "top_k": 20, "eos_token_id": [151645, 151643], "transformers_version": "4.37.0"})");
  EXPECT_EQ(defaults.temperature, 0.7);
  EXPECT_EQ(defaults.top_k, 20);
  EXPECT_EQ(defaults.top_p, 0.8);
  EXPECT_EQ(defaults.repetition_penalty, 1.05);
  EXPECT_EQ(defaults.min_p, std::nullopt);
  EXPECT_TRUE(defaults.unused.empty());

  SamplingParams before;
  before.min_p = 0.25;
  const SamplingParams after = with_defaults(before, defaults);
  EXPECT_EQ(after.temperature, 0.7);
  EXPECT_EQ(after.top_k, 20);
  EXPECT_EQ(after.min_p, 0.25);
}

// transformers 4.57, GenerationConfig: do_sample is false by default, temperature 1.
TEST_F(ModelDefaults, TakeTheLikeliestTokenWhereNobodySamples) {
  EXPECT_EQ(of_json(R"({"temperature": 0.7})").temperature, 0);
  EXPECT_EQ(of_json(R"({"do_sample": false, "temperature": 0.7})").temperature, 0);
  EXPECT_EQ(of_json(R"({"do_sample": true, "top_k": 64})").temperature, 1);
  EXPECT_EQ(of_json(R"({"do_sample": true, "top_k": -1})").top_k, 0);
}

TEST_F(ModelDefaults, AreAbsentWhereNoFileIs) {
  const SamplingDefaults defaults = read_sampling_defaults(directory_.path());
  EXPECT_EQ(defaults.temperature, std::nullopt);
  EXPECT_EQ(defaults.top_k, std::nullopt);
}

TEST_F(ModelDefaults, NameWhatHasNoCounterpart) {
  const SamplingDefaults defaults = of_json(
      R"({"do_sample": true, "no_repeat_ngram_size": 3, "num_beams": 1, "typical_p": 0.9,
          "bad_words_ids": [[3]], "suppress_tokens": []})");
  EXPECT_EQ(defaults.unused,
            (std::vector<std::string>{"typical_p 0.9", "no_repeat_ngram_size 3", "bad_words_ids"}));
}

TEST_F(ModelDefaults, RefuseWhatNoSamplingCanHave) {
  EXPECT_NE(refusal_of(R"({"do_sample": true, "top_p": 1.5})").find("top_p above 0, at most 1"),
            std::string::npos);
  EXPECT_NE(refusal_of(R"({"temperature": -1})").find("temperature 0 or more"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"top_k": 2.5})").find("top_k a whole number"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"temperature": "hot"})").find("temperature to be a number"),
            std::string::npos);
  EXPECT_NE(refusal_of(R"({"do_sample": 1})").find("do_sample to be true or false"),
            std::string::npos);
}

// general.sampling.*, written by llama.cpp's converter and read as defaults by its programs.
TEST_F(ModelDefaults, AreThoseOfGguf) {
  test::Gguf builder;
  builder.value("general.sampling.temp", test::kF32, 0.6F)
      .value("general.sampling.top_k", test::kI32, std::int32_t{40})
      .value("general.sampling.mirostat", test::kI32, std::int32_t{2});
  const SamplingDefaults defaults = of_gguf(builder);
  ASSERT_TRUE(defaults.temperature.has_value());
  EXPECT_FLOAT_EQ(static_cast<float>(*defaults.temperature), 0.6F);
  EXPECT_EQ(defaults.top_k, 40);
  EXPECT_EQ(defaults.top_p, std::nullopt);
  EXPECT_EQ(defaults.unused, std::vector<std::string>{"general.sampling.mirostat 2"});
}

// llama.cpp 0.7.0, common/common.h: penalty_last_n is 64 if a file names none, -1 the context.
TEST_F(ModelDefaults, PenaltiesOfTheLastTokensHaveNoCounterpart) {
  const auto with_last = [](std::optional<std::int32_t> last, float penalty) {
    test::Gguf builder;
    builder.value("general.sampling.penalty_repeat", test::kF32, penalty);
    if (last) builder.value("general.sampling.penalty_last_n", test::kI32, *last);
    return builder;
  };
  EXPECT_TRUE(of_gguf(with_last(-1, 1.5F)).unused.empty());
  EXPECT_TRUE(of_gguf(with_last(std::nullopt, 1.0F)).unused.empty());
  const std::vector<std::string> of_64 = {"general.sampling.penalty_last_n 64"};
  EXPECT_EQ(of_gguf(with_last(std::nullopt, 1.5F)).unused, of_64);
  EXPECT_EQ(of_gguf(with_last(64, 1.5F)).unused, of_64);
}

}  // namespace
}  // namespace outrider
