// SPDX-License-Identifier: Apache-2.0
// Files beside a tokenizer.json, and the paths that load.
#include <gtest/gtest.h>

#include "io/test_files.h"
#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using test::Ids;
using test::Json;
namespace fs = std::filesystem;

class LoadTokenizer : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("outrider_" +
               std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    Json document = test::byte_level_document(test::byte_vocabulary(), Json::array());
    document["added_tokens"] = Json::array({{{"id", 256}, {"content", "<s>"}, {"special", true}},
                                            {{"id", 257}, {"content", "</s>"}, {"special", true}}});
    write("tokenizer.json", document.dump());
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string load_error() {
    try {
      static_cast<void>(Tokenizer::load(folder_));
    } catch (const Error& error) {
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }
  fs::path folder_;
};

TEST_F(LoadTokenizer, TokenizerJsonAlone) {
  for (const fs::path& path : {folder_, folder_ / "tokenizer.json"}) {
    const auto tokenizer = Tokenizer::load(path);
    EXPECT_EQ(tokenizer->encode("a<s>", true), (Ids{'a', 256}));
    EXPECT_EQ(tokenizer->bos_token(), kNoToken);
    EXPECT_EQ(tokenizer->chat_template(), "");
  }
}

TEST_F(LoadTokenizer, NamedTokens) {
  write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}})");
  EXPECT_EQ(Tokenizer::load(folder_)->bos_token(), 256);
  EXPECT_EQ(Tokenizer::load(folder_ / "tokenizer.json")->eos_token(), 257);
  write("tokenizer_config.json", R"({"bos_token": null})");
  write("special_tokens_map.json",
        R"({"bos_token": {"content": "<s>"}, "eos_token": "<nothing>"})");
  EXPECT_EQ(Tokenizer::load(folder_)->bos_token(), 256);
  EXPECT_EQ(Tokenizer::load(folder_)->eos_token(), kNoToken);
}

TEST_F(LoadTokenizer, ChatTemplates) {
  write("tokenizer_config.json", R"({"chat_template": "one"})");
  EXPECT_EQ(Tokenizer::load(folder_)->chat_template(), "one");
  EXPECT_EQ(Tokenizer::load(folder_)->tool_template(), "one");
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "tool_use", "template": "two"},
                              {"name": "default", "template": "three"}]})");
  EXPECT_EQ(Tokenizer::load(folder_)->chat_template(), "three");
  EXPECT_EQ(Tokenizer::load(folder_)->tool_template(), "two");
  write("chat_template.jinja", "four\n");
  EXPECT_EQ(Tokenizer::load(folder_)->chat_template(), "four\n");
}

// Spelled as in the files, whether in the vocabulary or not; the configuration precedes the map.
TEST_F(LoadTokenizer, SpecialTokensForTemplates) {
  EXPECT_EQ(Tokenizer::load(folder_)->special_tokens(), "{}");
  write("tokenizer_config.json",
        R"({"bos_token": "<s>", "pad_token": {"content": "<pad>"}, "eos_token": null,
            "unk_token": "<unk>", "additional_special_tokens": ["<a>", {"content": "<b>"}]})");
  write("special_tokens_map.json", R"({"eos_token": "</s>", "pad_token": "<other>"})");
  const Json tokens = Json::parse(Tokenizer::load(folder_)->special_tokens());
  EXPECT_EQ(tokens, Json::parse(R"({"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
      "unk_token": "<unk>", "additional_special_tokens": ["<a>", "<b>"]})"));
}

class LoadSentencePiece : public LoadTokenizer {
 protected:
  void SetUp() override {
    LoadTokenizer::SetUp();
    fs::remove(folder_ / "tokenizer.json");
    write("tokenizer.model", model(-1));
  }
  // The blank and the letter have pieces of their own, and one together, with that score.
  static std::string model(float score) {
    return test::SentencePieces()
        .piece("<unk>", 0, 2)
        .piece("<s>", 0, 3)
        .piece("</s>", 0, 3)
        .piece("▁", -2)
        .piece("a", -2)
        .piece("▁a", score)
        .normalizer(test::Protobuf().integer(4, 0))
        .bytes();
  }
};

TEST_F(LoadSentencePiece, FromADirectoryOrByName) {
  for (const fs::path& path : {folder_, folder_ / "tokenizer.model"}) {
    const auto tokenizer = Tokenizer::load(path);
    EXPECT_EQ(tokenizer->encode("a</s>a", true), (Ids{1, 5, 2, 5}));
    EXPECT_EQ(tokenizer->bos_token(), 1);
    EXPECT_EQ(tokenizer->eos_token(), 2);
  }
  // Other names, of which the first counts; tokenizer.json precedes all of them.
  write("spiece.model", model(-9));
  write("sentencepiece.bpe.model", model(-1));
  write("other.spm", model(-9));
  EXPECT_EQ(Tokenizer::load(folder_)->encode("a", false), Ids{5});
  fs::remove(folder_ / "tokenizer.model");
  EXPECT_EQ(Tokenizer::load(folder_)->encode("a", false), (Ids{3, 4}));
  EXPECT_EQ(Tokenizer::load(folder_ / "other.spm")->encode("a", false), (Ids{3, 4}));
  fs::remove(folder_ / "spiece.model");
  EXPECT_EQ(Tokenizer::load(folder_)->encode("a", false), Ids{5});
  write("tokenizer.json", R"({"model": {"type": "Unigram", "vocab": [["a", 0]]}})");
  EXPECT_EQ(Tokenizer::load(folder_)->encode("a", false), Ids{0});
}

TEST_F(LoadSentencePiece, WhatTheConfigurationSays) {
  write("tokenizer_config.json",
        R"({"add_bos_token": false, "add_eos_token": true, "eos_token": "<|end|>", "legacy": false,
            "added_tokens_decoder": {
                "2": {"content": "</s>", "special": true},
                "6": {"content": "<|end|>", "special": true},
                "7": {"content": "<tool>", "special": false, "lstrip": true}},
            "chat_template": "t"})");
  const auto tokenizer = Tokenizer::load(folder_);
  EXPECT_EQ(tokenizer->encode("a<|end|>a <tool>", true), (Ids{5, 6, 4, 7, 6}));
  EXPECT_EQ(tokenizer->bos_token(), 1);
  EXPECT_EQ(tokenizer->eos_token(), 6);
  EXPECT_TRUE(tokenizer->is_special(6));
  EXPECT_FALSE(tokenizer->is_special(7));
  EXPECT_EQ(tokenizer->chat_template(), "t");
  EXPECT_EQ(Json::parse(tokenizer->special_tokens()), Json::parse(R"({"eos_token": "<|end|>"})"));
  write("tokenizer_config.json", R"({"add_prefix_space": false, "bos_token": "</s>"})");
  EXPECT_EQ(Tokenizer::load(folder_)->encode("a a", true), (Ids{2, 4, 5}));
}

// In older directories, which list them separately.
TEST_F(LoadSentencePiece, AddedTokensFile) {
  write("added_tokens.json", R"({"<|end|>": 6, "<tool>": 7})");
  write("special_tokens_map.json", R"({"additional_special_tokens": ["<|end|>"]})");
  const auto tokenizer = Tokenizer::load(folder_);
  EXPECT_EQ(tokenizer->encode("<tool>a<|end|>", false), (Ids{7, 5, 6}));
  EXPECT_TRUE(tokenizer->is_special(6));
  EXPECT_FALSE(tokenizer->is_special(7));
  write("added_tokens.json", R"({"<|end|>": 4})");
  EXPECT_NE(load_error().find("id 4"), std::string::npos);
  write("added_tokens.json", R"({"<|end|>": "6"})");
  EXPECT_NE(load_error().find("added_tokens.json: <|end|>"), std::string::npos);
}

// If the model drops blanks at the ends of a text, "legacy": false cannot be followed.
TEST_F(LoadSentencePiece, LegacyIsDoubtfulForSingleBlanks) {
  write("tokenizer_config.json", R"({"legacy": false})");
  EXPECT_TRUE(Tokenizer::load(folder_)->warnings().empty());
  write("tokenizer.model", test::SentencePieces().piece("<unk>", 0, 2).piece("a", 0).bytes());
  const auto tokenizer = Tokenizer::load(folder_);
  ASSERT_EQ(tokenizer->warnings().size(), 1u);
  EXPECT_NE(tokenizer->warnings()[0].find("legacy"), std::string::npos);
}

TEST_F(LoadSentencePiece, WhatCannotLoad) {
  write("tokenizer_config.json", R"({"add_eos_token": true})");
  write("tokenizer.model", test::SentencePieces().piece("<unk>", 0, 2).piece("a", 0).bytes());
  EXPECT_NE(load_error().find("add_eos_token"), std::string::npos);
  write("tokenizer_config.json", R"({"tokenizer_class": "XLMRobertaTokenizerFast"})");
  EXPECT_NE(load_error().find("XLMRobertaTokenizerFast"), std::string::npos);
  fs::remove(folder_ / "tokenizer_config.json");
  write("tokenizer.model", "IQ== 0\n");
  EXPECT_NE(load_error().find("tiktoken"), std::string::npos);
  fs::remove(folder_ / "tokenizer.model");
  fs::create_symlink("nowhere", folder_ / "tokenizer.model");
  EXPECT_NE(load_error().find("tokenizer.model"), std::string::npos);
}

TEST_F(LoadTokenizer, WhatCannotLoad) {
  write("tokenizer_config.json", R"({"bos_token": 5})");
  EXPECT_NE(load_error().find("bos_token"), std::string::npos);
  write("tokenizer_config.json", R"({"chat_template": 5})");
  EXPECT_NE(load_error().find("chat_template"), std::string::npos);
  write("tokenizer_config.json", "{");
  EXPECT_NE(load_error().find("tokenizer_config.json"), std::string::npos);
  fs::remove(folder_ / "tokenizer_config.json");
  write("chat_template.jinja", "\xFF");
  EXPECT_NE(load_error().find("chat_template.jinja"), std::string::npos);
  fs::remove(folder_ / "chat_template.jinja");
  // A dangling link, left by an interrupted download, is not a missing file.
  for (const char* name : {"tokenizer_config.json", "chat_template.jinja"}) {
    fs::create_symlink("nowhere", folder_ / name);
    EXPECT_NE(load_error().find(name), std::string::npos);
    fs::remove(folder_ / name);
  }
  write("x.gguf", "GGUX");
  EXPECT_THROW(static_cast<void>(Tokenizer::load(folder_ / "x.gguf")), Error);
  write("x.gguf", "GGUF");
  EXPECT_THROW(static_cast<void>(Tokenizer::load(folder_ / "x.gguf")), Error);
  EXPECT_THROW(static_cast<void>(Tokenizer::load(folder_ / "nothing")), Error);
  fs::remove(folder_ / "tokenizer.json");
  EXPECT_NE(load_error().find("tokenizer.json"), std::string::npos);
}

}  // namespace
}  // namespace outrider
