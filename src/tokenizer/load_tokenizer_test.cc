// What stands beside a tokenizer.json, and which paths load.
#include <gtest/gtest.h>

#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using test_tokenizers::Ids;
using test_tokenizers::Json;
namespace fs = std::filesystem;

class LoadTokenizer : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        ("outrider_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    Json document =
        test_tokenizers::byte_level_document(test_tokenizers::byte_vocabulary(), Json::array());
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

// As they are spelled, in the vocabulary or not; the configuration before the map.
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
  // A link that leads nowhere, as an interrupted download leaves it, is no missing file.
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
