// SPDX-License-Identifier: Apache-2.0
// Tokenizers built like those of Qwen2, Qwen3, Qwen3.5 and Gemma 3, from tokenizer.json and from
// GGUF, compared with Hugging Face's tokenizers on the same documents
// (tests/golden/make/make_model_tokenizer_goldens.py).
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "io/test_files.h"
#include "tokenizer/formats/gguf_vocabulary.h"
#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using test::Ids;
using test::Json;

const Json& goldens() {
  static const Json document = Json::parse(test::read_file(
      std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests/golden/model_tokenizers.json"));
  return document;
}

// The golden tokenizer with that name.
const Json& golden(std::string_view name) {
  for (const Json& one : goldens()["tokenizers"]) {
    if (one["name"] == name) return one;
  }
  throw Error("find golden", name, "missing");
}

// The fields of a GGUF file equivalent to a tokenizer.json.
struct Fields {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;  // 1 ordinary, 3 special, 4 added, 6 byte

  explicit Fields(const Json& document) {
    const Json& vocab = document["model"]["vocab"];
    const Json& added = document["added_tokens"];
    for (auto it = vocab.begin(); it != vocab.end(); ++it) put(it->get<TokenId>(), it.key(), 1);
    for (const Json& token : added) {
      put(token["id"].get<TokenId>(), token["content"].get<std::string>(),
          token["special"].get<bool>() ? 3 : 4);
    }
  }
  void put(TokenId id, const std::string& piece, std::int32_t type) {
    const auto index = static_cast<std::size_t>(id);
    if (index >= tokens.size()) {
      tokens.resize(index + 1);
      types.resize(index + 1);
    }
    tokens[index] = piece;
    types[index] = type;
  }
};

PipelineTokenizer read_gguf(const test::Gguf& file) {
  const auto bytes = file.bytes();
  return PipelineTokenizer(read_gguf_vocabulary(*parse_gguf(bytes, "test.gguf"), "test.gguf"));
}

PipelineTokenizer qwen_gguf(const Json& document, std::string_view pre) {
  const Fields fields(document);
  std::vector<std::string> merges;
  for (const Json& merge : document["model"]["merges"]) {
    merges.push_back(merge.is_string()
                         ? merge.get<std::string>()
                         : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  return read_gguf(test::Gguf()
                       .text("tokenizer.ggml.model", "gpt2")
                       .text("tokenizer.ggml.pre", pre)
                       .texts("tokenizer.ggml.tokens", fields.tokens)
                       .array("tokenizer.ggml.token_type", test::kI32, fields.types)
                       .texts("tokenizer.ggml.merges", merges)
                       .value("tokenizer.ggml.add_bos_token", test::kBool, std::uint8_t{0}));
}

// Scores fall from piece to piece. Runs of blanks are spelled with blanks there, and found before
// anything else.
PipelineTokenizer gemma_gguf(const Json& document) {
  Fields fields(document);
  std::vector<float> scores;
  for (std::size_t id = 0; id < fields.tokens.size(); ++id) {
    std::string& token = fields.tokens[id];
    if (fields.types[id] == 4 && token.starts_with(kLowerBlock)) {
      token.assign(token.size() / kLowerBlock.size(), ' ');
    }
    if (token.size() == 6 && token.starts_with("<0x")) fields.types[id] = 6;
    scores.push_back(fields.types[id] == 1 ? -static_cast<float>(id) : -1000.0f);
  }
  return read_gguf(test::Gguf()
                       .text("tokenizer.ggml.model", "llama")
                       .text("tokenizer.ggml.pre", "default")
                       .texts("tokenizer.ggml.tokens", fields.tokens)
                       .array("tokenizer.ggml.scores", test::kF32, scores)
                       .array("tokenizer.ggml.token_type", test::kI32, fields.types)
                       .value("tokenizer.ggml.bos_token_id", test::kU32, std::uint32_t{2})
                       .value("tokenizer.ggml.eos_token_id", test::kU32, std::uint32_t{1})
                       .value("tokenizer.ggml.unknown_token_id", test::kU32, std::uint32_t{3})
                       .value("tokenizer.ggml.add_bos_token", test::kBool, std::uint8_t{1})
                       .value("tokenizer.ggml.add_space_prefix", test::kBool, std::uint8_t{0}));
}

struct Leaving {
  bool marked_texts = false;  // texts that contain the mark of a blank
  bool backwards = false;     // decoding reversed ids, which splits characters
};

void check(const Tokenizer& tokenizer, const Json& one, Leaving out = {}) {
  const Json& texts = goldens()["texts"];
  ASSERT_EQ(one["ids"].size(), texts.size());
  std::size_t n_checked = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto text = texts[i].get<std::string>();
    if (out.marked_texts && text.find(kLowerBlock) != std::string::npos) continue;
    SCOPED_TRACE(::testing::Message() << "text " << i << ": " << text);
    ++n_checked;
    const Ids ids = one["ids"][i].get<Ids>();
    EXPECT_EQ(tokenizer.encode(text, true), ids);
    EXPECT_EQ(tokenizer.encode(text, false), one["plain_ids"][i].get<Ids>());
    const auto check_decoding = [&](const char* key, const Ids& tokens, bool keep_special) {
      const auto expected = one[key][i].get<std::string>();
      EXPECT_EQ(tokenizer.decode(tokens, keep_special), expected) << key;
      EXPECT_EQ(test::stream(tokenizer, tokens, keep_special), expected) << key;
    };
    check_decoding("decoded", ids, false);
    check_decoding("decoded_special", ids, true);
    if (out.backwards) continue;
    check_decoding("decoded_backwards", Ids(ids.rbegin(), ids.rend()), false);
  }
  EXPECT_GE(n_checked, 55u);
}

TEST(ModelTokenizers, TokenizerJsonEqualsHuggingFace) {
  ASSERT_EQ(goldens()["tokenizers"].size(), 5u);
  for (const Json& one : goldens()["tokenizers"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    check(*test::make_tokenizer(one["tokenizer"]), one);
  }
}

TEST(ModelTokenizers, QwenGgufEqualsTokenizerJson) {
  const std::pair<const char*, const char*> cases[] = {
      {"qwen2", "qwen2"}, {"qwen3", "qwen2"}, {"qwen35", "qwen35"}};
  for (const auto& [name, pre] : cases) {
    SCOPED_TRACE(::testing::Message() << name << " as " << pre);
    check(qwen_gguf(golden(name)["tokenizer"], pre), golden(name));
  }
}

// The differences between the names: marks are letters only for qwen35, and pre-tokenisers of other
// models do not compose.
TEST(ModelTokenizers, QwenNamesDiffer) {
  const Json& document = golden("qwen2")["tokenizer"];
  const std::string marks = "नदी का पानी";
  EXPECT_NE(qwen_gguf(document, "qwen2").encode(marks, false),
            qwen_gguf(document, "qwen35").encode(marks, false));
  const std::string composed = "é";
  const std::string apart = "e\u0301";
  const auto ids = [&](const char* pre, const std::string& text) {
    return qwen_gguf(document, pre).encode(text, false);
  };
  EXPECT_EQ(ids("qwen2", apart), ids("qwen2", composed));
  EXPECT_NE(ids("llama-bpe", apart), ids("llama-bpe", composed));
}

// Where a tokenizer.json adds the mark of a blank twice as a token, a GGUF file adds two blanks. So
// a text that contains the mark itself is decoded differently. So is a character with missing
// bytes: one U+FFFD per byte there, one in total here.
TEST(ModelTokenizers, GemmaGgufEqualsTokenizerJson) {
  check(gemma_gguf(golden("gemma3")["tokenizer"]), golden("gemma3"),
        {.marked_texts = true, .backwards = true});
}

}  // namespace
}  // namespace outrider
