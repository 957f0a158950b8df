// SPDX-License-Identifier: Apache-2.0
// Files that say too little or name tokens that do not exist are read, with warnings. They are
// treated as by llama.cpp 0.7.0, except that a start token without a usable id is absent here
// (there: token 11).
#include <gtest/gtest.h>

#include <optional>

#include "io/test_files.h"
#include "tokenizer/formats/gguf_vocabulary.h"
#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using test::Ids;
using test::Json;

struct Named {
  std::string model = "gpt2";
  std::optional<std::string> pre = {};
  std::vector<std::pair<std::string, std::uint32_t>> ids = {};
  bool add_bos = false;
};

test::Bytes file_of(const Named& named) {
  test::Gguf file;
  file.text("tokenizer.ggml.model", named.model);
  if (named.pre) file.text("tokenizer.ggml.pre", *named.pre);
  file.texts("tokenizer.ggml.tokens", {"<s>", "</s>", "a", "b", "ab"})
      .array("tokenizer.ggml.token_type", test::kI32, std::vector<std::int32_t>{3, 3, 1, 1, 1})
      .texts("tokenizer.ggml.merges", {"a b"})
      .value("tokenizer.ggml.add_bos_token", test::kBool,
             std::uint8_t{named.add_bos ? std::uint8_t{1} : std::uint8_t{0}});
  for (const auto& [key, id] : named.ids) {
    file.value("tokenizer.ggml." + key, test::kU32, id);
  }
  return file.bytes();
}

PipelineTokenizer read(const Named& named) {
  const auto bytes = file_of(named);
  const auto file = parse_gguf(bytes, "odd.gguf");
  TokenizerParts parts = read_gguf_vocabulary(*file, "odd.gguf");
  // Warnings about headers come first, in the same words.
  const std::vector<std::string> seen = gguf_vocabulary_warnings(*file, "odd.gguf");
  EXPECT_LE(seen.size(), parts.warnings.size());
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), parts.warnings.begin()));
  return PipelineTokenizer(std::move(parts));
}

TEST(DoubtfulFiles, NoPreTokeniserIsTheDefaultOne) {
  const PipelineTokenizer tokenizer = read({});
  ASSERT_EQ(tokenizer.warnings().size(), 1u);
  EXPECT_NE(tokenizer.warnings()[0].find("odd.gguf: tokenizer.ggml.pre"), std::string::npos);
  EXPECT_EQ(tokenizer.encode("abba", true), (Ids{4, 3, 2}));
  EXPECT_TRUE(read({.pre = "default"}).warnings().empty());
  EXPECT_TRUE(read({.pre = "gpt-2"}).warnings().empty());
  EXPECT_TRUE(read({.model = "llama"}).warnings().empty());
}

TEST(DoubtfulFiles, IdsOutsideTheVocabularyAreIgnored) {
  const PipelineTokenizer tokenizer = read({.pre = "gpt-2",
                                            .ids = {{"bos_token_id", 0},
                                                    {"eos_token_id", 5},
                                                    {"eot_token_id", 1},
                                                    {"eom_token_id", 4000000000U},
                                                    {"padding_token_id", 99}},
                                            .add_bos = true});
  EXPECT_EQ(tokenizer.bos_token(), 0);
  EXPECT_EQ(tokenizer.eos_token(), kNoToken);
  EXPECT_EQ(tokenizer.encode("ab", true), (Ids{0, 4}));
  const std::vector<std::string>& warnings = tokenizer.warnings();
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_EQ(warnings[0],
            "odd.gguf: tokenizer.ggml.eos_token_id is 5, outside the vocabulary of 5 tokens; it is "
            "ignored");
  EXPECT_NE(warnings[1].find("eom_token_id is 4000000000,"), std::string::npos);
  EXPECT_NE(warnings[2].find("padding_token_id is 99,"), std::string::npos);
}

TEST(DoubtfulFiles, ABeginningThatDoesNotExistIsNotAdded) {
  for (const Named& named : {Named{.pre = "gpt-2", .ids = {{"bos_token_id", 7}}, .add_bos = true},
                             Named{.pre = "gpt-2", .add_bos = true}}) {
    const PipelineTokenizer tokenizer = read(named);
    EXPECT_EQ(tokenizer.bos_token(), kNoToken);
    EXPECT_EQ(tokenizer.encode("ab", true), Ids{4});
    ASSERT_EQ(tokenizer.warnings().size(), named.ids.size() + 1);
    EXPECT_NE(tokenizer.warnings().back().find("add_bos_token"), std::string::npos);
  }
  // Vocabularies of kind llama have default ids if none, or none that exist, are named.
  const PipelineTokenizer llama = read({.model = "llama", .ids = {{"eos_token_id", 7}}});
  EXPECT_EQ(llama.bos_token(), 1);
  EXPECT_EQ(llama.eos_token(), 2);
  EXPECT_EQ(llama.warnings().size(), 1u);
}

class DoubtfulDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / "outrider_doubtful_directory";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Json document = test::byte_level_document(test::byte_vocabulary(), Json::array());
    document["added_tokens"] = Json::array({{{"id", 256}, {"content", "<s>"}, {"special", true}}});
    write("tokenizer.json", document.dump());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::filesystem::path folder_;
};

TEST_F(DoubtfulDirectory, NamedTokensThatDoNotExist) {
  write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": {"content": "<end>"}})");
  const auto tokenizer = Tokenizer::load(folder_);
  EXPECT_EQ(tokenizer->bos_token(), 256);
  EXPECT_EQ(tokenizer->eos_token(), kNoToken);
  ASSERT_EQ(tokenizer->warnings().size(), 1u);
  EXPECT_NE(tokenizer->warnings()[0].find("tokenizer_config.json: eos_token"), std::string::npos);
  EXPECT_NE(tokenizer->warnings()[0].find("<end>"), std::string::npos);
  write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": null})");
  EXPECT_TRUE(Tokenizer::load(folder_)->warnings().empty());
}

}  // namespace
}  // namespace outrider
