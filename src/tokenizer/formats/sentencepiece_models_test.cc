// SPDX-License-Identifier: Apache-2.0
// Compares SentencePiece's model files with SentencePiece itself, on goldens of
// tests/golden/make/make_sentencepiece_goldens.py: tiny models of every kind, and real ones if the
// folder of shared data is there.
#include <gtest/gtest.h>

#include "io/test_files.h"
#include "tokenizer/formats/gguf_vocabulary.h"
#include "tokenizer/formats/sentencepiece_parts.h"
#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using test::Ids;
using test::Json;
namespace fs = std::filesystem;

const Json& goldens() {
  static const Json document = Json::parse(
      test::read_file(fs::path(OUTRIDER_SOURCE_DIR) / "tests/golden/sentencepiece_models.json"));
  return document;
}

bool spells_special(const Tokenizer& tokenizer, const std::string& text) {
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (tokenizer.is_special(id) && text.find(tokenizer.piece(id)) != std::string::npos) {
      return true;
    }
  }
  return false;
}

void check_decoding(const Tokenizer& tokenizer, const Ids& ids, const std::string& expected) {
  EXPECT_EQ(tokenizer.decode(ids), expected);
  EXPECT_EQ(test::stream(tokenizer, ids), expected);
}

// Unknown tokens are decoded to nothing here, and were omitted there.
void check(const Tokenizer& tokenizer, const Json& one) {
  const Json& texts = goldens()["texts"];
  ASSERT_EQ(one["ids"].size(), texts.size());
  std::size_t n_checked = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto text = texts[i].get<std::string>();
    SCOPED_TRACE(text);
    const Ids ids = one["ids"][i].get<Ids>();
    check_decoding(tokenizer, ids, one["decoded"][i].get<std::string>());
    if (spells_special(tokenizer, text)) continue;  // those are tokens here and letters there
    EXPECT_EQ(tokenizer.encode(text, false), ids);
    ++n_checked;
  }
  EXPECT_GE(n_checked, 60u);
}

TEST(SentencePieceModels, EqualSentencePiece) {
  ASSERT_EQ(goldens()["models"].size(), 14u);
  for (const Json& one : goldens()["models"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const std::string bytes = test::from_base64(one["model"].get<std::string>());
    const PipelineTokenizer tokenizer(
        sentencepiece_parts(parse_sentencepiece_model(bytes, "test"), "test"));
    check(tokenizer, one);
    for (std::size_t i = 0; i < one["lists"].size(); ++i) {
      SCOPED_TRACE(one["lists"][i].dump());
      check_decoding(tokenizer, one["lists"][i].get<Ids>(),
                     one["decoded_lists"][i].get<std::string>());
    }
  }
}

// The same models as GGUF files of kind "t5", with all that such a file can express (no byte
// tokens, no suffixes). Without user-defined symbols, which are split off there.
TEST(SentencePieceModels, GgufOfKindT5EqualsSentencePiece) {
  int n_models = 0;
  for (const Json& one : goldens()["models"]) {
    const auto name = one["name"].get<std::string>();
    if (name != "unigram" && name != "unigram no prefix" && name != "unigram nothing") continue;
    SCOPED_TRACE(name);
    const std::string bytes = test::from_base64(one["model"].get<std::string>());
    const SentencePieceModel model = parse_sentencepiece_model(bytes, "test");
    std::vector<std::string> tokens;
    std::vector<float> scores;
    std::vector<std::int32_t> types;
    std::uint32_t unknown = 0;
    for (const SentencePiece& piece : model.pieces) {
      if (piece.type == PieceType::kUnknown) unknown = static_cast<std::uint32_t>(tokens.size());
      tokens.push_back(piece.text);
      scores.push_back(piece.score);
      types.push_back(static_cast<std::int32_t>(piece.type));
    }
    const auto flag = [](bool value) { return static_cast<std::uint8_t>(value); };
    const std::vector<std::uint8_t> map(model.charsmap.begin(), model.charsmap.end());
    const auto file =
        test::Gguf()
            .text("tokenizer.ggml.model", "t5")
            .texts("tokenizer.ggml.tokens", tokens)
            .array("tokenizer.ggml.scores", test::kF32, scores)
            .array("tokenizer.ggml.token_type", test::kI32, types)
            .array("tokenizer.ggml.precompiled_charsmap", test::kU8, map)
            .value("tokenizer.ggml.unknown_token_id", test::kU32, unknown)
            .value("tokenizer.ggml.eos_token_id", test::kU32, std::uint32_t{2})
            .value("tokenizer.ggml.add_space_prefix", test::kBool, flag(model.add_blank))
            .value("tokenizer.ggml.remove_extra_whitespaces", test::kBool,
                   flag(model.single_blanks))
            .bytes();
    const PipelineTokenizer tokenizer(read_gguf_vocabulary(*parse_gguf(file, "test"), "test"));
    check(tokenizer, one);
    const Ids ids = tokenizer.encode("the", true);
    EXPECT_EQ(ids.back(), 2);  // the end token after a text, none before
    EXPECT_EQ(Ids(ids.begin(), ids.end() - 1), tokenizer.encode("the", false));
    ++n_models;
  }
  EXPECT_EQ(n_models, 3);
}

TEST(SentencePieceModels, RealOnesEqualSentencePiece) {
  const fs::path folder = test::shared_data() / "tokenizers";
  if (!fs::exists(folder)) GTEST_SKIP() << "no " << folder;
  ASSERT_EQ(goldens()["shared"].size(), 10u);
  for (const Json& one : goldens()["shared"]) {
    const auto file = one["file"].get<std::string>();
    SCOPED_TRACE(file);
    check(*Tokenizer::load(folder / file), one);
  }
}

}  // namespace
}  // namespace outrider
