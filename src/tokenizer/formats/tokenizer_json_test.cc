// SPDX-License-Identifier: Apache-2.0
// Compares every component of tokenizer.json with Hugging Face's own tokenizers, on goldens of
// tests/golden/make/make_tokenizer_goldens.py.
#include "tokenizer/formats/tokenizer_json.h"

#include <gtest/gtest.h>

#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using test::Ids;
using test::Json;

void compare_with_hugging_face(const char* file, std::size_t n_variants) {
  const Json goldens = Json::parse(
      test::read_file(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests/golden" / file));
  const Json& texts = goldens["texts"];
  ASSERT_EQ(goldens["variants"].size(), n_variants);
  for (const Json& variant : goldens["variants"]) {
    SCOPED_TRACE(variant["name"].get<std::string>());
    Json document = variant;
    document["model"] = goldens["models"][variant["model"].get<std::string>()];
    const auto tokenizer = test::make_tokenizer(document);
    const Json& plain = variant.contains("plain_ids") ? variant["plain_ids"] : variant["ids"];
    const Json& special =
        variant.contains("decoded_special") ? variant["decoded_special"] : variant["decoded"];
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto text = texts[i].get<std::string>();
      SCOPED_TRACE(text);
      const Ids ids = variant["ids"][i].get<Ids>();
      EXPECT_EQ(tokenizer->encode(text, true), ids);
      EXPECT_EQ(tokenizer->encode(text, false), plain[i].get<Ids>());
      // Null if the reference panics.
      const auto check = [&](const Json& expected, const Ids& tokens, bool keep_special) {
        if (!expected.is_null()) {
          EXPECT_EQ(tokenizer->decode(tokens, keep_special), expected.get<std::string>());
        }
        EXPECT_EQ(test::stream(*tokenizer, tokens, keep_special),
                  tokenizer->decode(tokens, keep_special));
      };
      check(variant["decoded"][i], ids, false);
      check(special[i], ids, true);
      check(variant["decoded_backwards"][i], Ids(ids.rbegin(), ids.rend()), false);
    }
  }
}

TEST(TokenizerJson, EveryComponentEqualsHuggingFace) {
  compare_with_hugging_face("tokenizer_variants.json", 77);
}

// tests/golden/make/make_sentencepiece_goldens.py
TEST(TokenizerJson, UnigramEqualsHuggingFace) {
  compare_with_hugging_face("unigram_variants.json", 20);
}

// Words in the byte-level alphabet are spelled out for the search for pieces.
TEST(TokenizerJson, UnigramOfTheByteLevelAlphabet) {
  Json document = test::byte_level_document(Json::object(), Json::array());
  document["model"] = {{"type", "Unigram"},
                       {"unk_id", 0},
                       {"vocab", Json::parse(R"([["?", 0], ["\u0120", -1], ["\u00c3\u00a9", -1],
                                                 ["\u0120\u00c3\u00a9", -1.5]])")}};
  EXPECT_EQ(test::make_tokenizer(document)->encode("\u00e9 \u00e9 ", false), (Ids{2, 3, 1}));
}

TEST(TokenizerJson, MergesMayBePairs) {
  Json vocab = test::byte_vocabulary();
  vocab["ab"] = 256;
  Json document = test::byte_level_document(vocab, Json::array({"a b"}));
  EXPECT_EQ(test::make_tokenizer(document)->encode("ab", false), Ids{256});
  document["model"]["merges"] = Json::parse(R"([["a", "b"]])");
  EXPECT_EQ(test::make_tokenizer(document)->encode("ab", false), Ids{256});
}

TEST(TokenizerJson, LooksThingsUp) {
  Json vocab = test::byte_vocabulary();
  Json document = test::byte_level_document(vocab, Json::array());
  document["added_tokens"] =
      Json::array({{{"id", 300}, {"content", "<s>"}, {"special", true}},
                   {{"id", 301}, {"content", "<tool>"}, {"special", false}}});
  const auto tokenizer = test::make_tokenizer(document);
  EXPECT_EQ(tokenizer->vocabulary_size(), 302);
  EXPECT_EQ(tokenizer->find("<s>"), 300);
  EXPECT_EQ(tokenizer->find("a"), 'a');
  EXPECT_EQ(tokenizer->find("<nothing>"), std::nullopt);
  EXPECT_EQ(tokenizer->piece(301), "<tool>");
  EXPECT_TRUE(tokenizer->is_special(300));
  EXPECT_FALSE(tokenizer->is_special(301));
  EXPECT_FALSE(tokenizer->is_special(-1));
  EXPECT_FALSE(tokenizer->is_special(1000));
  EXPECT_EQ(tokenizer->bos_token(), kNoToken);
  // 256..299 are unused.
  for (const TokenId id : {-1, 256, 299, 302, 1 << 30}) {
    EXPECT_THROW(static_cast<void>(tokenizer->decode(Ids{id})), Error) << id;
    EXPECT_THROW(static_cast<void>(tokenizer->piece(id)), Error) << id;
  }
}

TEST(TokenizerJson, ReadsInvalidUtf8AsReplacementCharacters) {
  const auto tokenizer =
      test::make_tokenizer(test::byte_level_document(test::byte_vocabulary(), Json::array()));
  const std::string fffd(kReplacementCharacter);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a\xFFz", "a" + fffd + "z"},
      {"\xE3\x81", fffd},                    // unfinished: one
      {"\xE3\x81z", fffd + "z"},             // cut short: one
      {"\xC0\xAF", fffd + fffd},             // overlong: bytes that begin nothing
      {"\xED\xA0\x80", fffd + fffd + fffd},  // a surrogate
      {"\xF4\x90\x80\x80", fffd + fffd + fffd + fffd},
      {"\xF0\x9F\x91\xF0\x9F\x91\x8D", fffd + "\xF0\x9F\x91\x8D"},
  };
  for (const auto& [bad, good] : cases) {
    EXPECT_EQ(tokenizer->encode(bad, true), tokenizer->encode(good, true));
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(bad, true)), good);
  }
}

TEST(TokenizerJson, DecodesEveryByteStringToValidText) {
  const auto tokenizer =
      test::make_tokenizer(test::byte_level_document(test::byte_vocabulary(), Json::array()));
  std::uint32_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    Ids ids;
    std::string bytes;
    for (int i = 0; i < 12; ++i) {
      state = state * 1664525u + 1013904223u;
      // Mostly bytes that begin or break characters.
      const int byte = (state >> 29) == 0 ? 'a' : 0x80 + static_cast<int>(state >> 20 & 0x7F);
      ids.push_back(byte);
      bytes.push_back(static_cast<char>(byte));
    }
    EXPECT_EQ(tokenizer->decode(ids), repair_utf8(bytes));
    EXPECT_EQ(test::stream(*tokenizer, ids), repair_utf8(bytes));
  }
}

}  // namespace
}  // namespace outrider
