// SPDX-License-Identifier: Apache-2.0
// Text that never becomes an added token, and the places of added tokens in a text. The expected
// ids are those of the same text with a tokenizer of the same pieces but no added tokens, combined
// by hand.
#include <gtest/gtest.h>

#include "io/test_files.h"
#include "tokenizer/formats/gguf_vocabulary.h"
#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using test::Ids;
using test::Json;
using Ranges = std::vector<TextRange>;

Ids literal(const Tokenizer& tokenizer, std::string_view text, const Ranges& ranges) {
  return tokenizer.encode_with_literals(text, false, ranges);
}

// Ids 0 to 255 are bytes, 256 "<|", 257 " <|", 258 "<|>", 259 "<|>!" (special), 260 "Hej" (matched
// in the normalised text).
Json byte_level() {
  Json vocab = test::byte_vocabulary();
  vocab["<|"] = 256;
  vocab["Ġ<|"] = 257;
  Json document = test::byte_level_document(vocab, Json::array({"< |", "Ġ <|"}));
  document["added_tokens"] =
      Json::array({{{"id", 258}, {"content", "<|>"}, {"special", true}},
                   {{"id", 259}, {"content", "<|>!"}, {"special", true}},
                   {{"id", 260}, {"content", "Hej"}, {"special", false}, {"normalized", true}}});
  return document;
}

TEST(LiteralText, ByteLevel) {
  const auto tokenizer = test::make_tokenizer(byte_level());
  const std::string text = "<|>a <|>!";
  EXPECT_EQ(tokenizer->encode(text, false), (Ids{258, 'a', ' ', 259}));
  EXPECT_EQ(literal(*tokenizer, text, {}), (Ids{258, 'a', ' ', 259}));
  // The blank before merges with the beginning of the spelling.
  EXPECT_EQ(literal(*tokenizer, text, {{5, 8}}), (Ids{258, 'a', 257, '>', '!'}));
  EXPECT_EQ(literal(*tokenizer, text, {{0, 9}}), (Ids{256, '>', 'a', 257, '>', '!'}));
  // One literal byte suffices; a shorter token that ends before it is kept.
  EXPECT_EQ(literal(*tokenizer, text, {{1, 2}, {8, 9}}), (Ids{256, '>', 'a', ' ', 258, '!'}));
  // An empty range contains no byte.
  EXPECT_EQ(literal(*tokenizer, text, {{1, 1}, {9, 9}}), (Ids{258, 'a', ' ', 259}));
  EXPECT_EQ(literal(*tokenizer, "Hej <|>", {{0, 3}}), (Ids{'H', 'e', 'j', ' ', 258}));
  EXPECT_EQ(tokenizer->decode(literal(*tokenizer, text, {{0, 9}})), text);
}

TEST(LiteralText, BytesThatAreNoText) {
  const auto tokenizer = test::make_tokenizer(byte_level());
  // Each bad byte becomes three; ranges refer to the given bytes.
  const std::string text = "\xFF<|>\xFF<|>";
  const Ids bad = {0xEF, 0xBF, 0xBD};
  Ids expected = bad;
  expected.insert(expected.end(), {256, '>'});
  expected.insert(expected.end(), bad.begin(), bad.end());
  expected.push_back(258);
  EXPECT_EQ(literal(*tokenizer, text, {{1, 4}}), expected);
  EXPECT_EQ(tokenizer->added_tokens_in(text), (Ranges{{1, 4}, {5, 8}}));
}

TEST(LiteralText, RangesMustBeRanges) {
  const auto tokenizer = test::make_tokenizer(byte_level());
  for (const Ranges& ranges : {Ranges{{0, 5}}, Ranges{{2, 1}}, Ranges{{2, 3}, {0, 1}},
                               Ranges{{0, 2}, {1, 3}}, Ranges{{4, 5}}}) {
    EXPECT_THROW(literal(*tokenizer, "<|>a", ranges), Error);
  }
  EXPECT_NO_THROW(literal(*tokenizer, "<|>a", {{0, 1}, {1, 4}}));
  EXPECT_NO_THROW(literal(*tokenizer, "", {{0, 0}}));
}

// Like SentencePiece models in tokenizer.json: blanks become U+2581, and one is prepended.
TEST(LiteralText, SentencePieceType) {
  Json vocab = {{"<unk>", 0}, {"<s>", 1}, {"<", 2},  {"s", 3},  {">", 4},    {"a", 5},
                {"▁", 6},     {"s>", 7},  {"▁a", 8}, {"▁<", 9}, {"▁<x>", 10}};
  Json document = {
      {"added_tokens",
       Json::array({{{"id", 1}, {"content", "<s>"}, {"special", true}},
                    {{"id", 11}, {"content", "a<"}, {"special", false}, {"normalized", true}}})},
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers",
         Json::array({{{"type", "Prepend"}, {"prepend", "▁"}},
                      {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}}})}}},
      {"model",
       {{"type", "BPE"},
        {"unk_token", "<unk>"},
        {"vocab", vocab},
        {"merges", Json::array({"s >", "▁ a", "▁ <"})}}}};
  const auto tokenizer = test::make_tokenizer(document);
  // The second added token is matched after the normaliser, which prepends a blank there.
  EXPECT_EQ(tokenizer->encode("a <s>a", false), (Ids{8, 6, 1, 8}));
  EXPECT_EQ(literal(*tokenizer, "a <s>a", {{2, 5}}), (Ids{8, 9, 7, 5}));
  EXPECT_EQ(literal(*tokenizer, "a <s>a", {{4, 5}}), (Ids{8, 9, 7, 5}));
  EXPECT_EQ(tokenizer->added_tokens_in("a <s>a"), (Ranges{{2, 5}}));
  EXPECT_EQ(tokenizer->encode("s a<", false), (Ids{6, 3, 11}));
  EXPECT_EQ(literal(*tokenizer, "s a<", {{2, 3}}), (Ids{6, 3, 8, 2}));
  EXPECT_EQ(literal(*tokenizer, "s a<", {{0, 1}}), (Ids{6, 3, 11}));
}

// Tokens in the normalised text, where normalising makes it longer, shorter, or changes letters.
TEST(LiteralText, NormalisedTokens) {
  Json document = byte_level();
  document["normalizer"] = {
      {"type", "Sequence"},
      {"normalizers", Json::array({{{"type", "NFKC"}}, {{"type", "Lowercase"}}})}};
  const auto tokenizer = test::make_tokenizer(document);
  const std::string text = "ﷺ HEJ e\u0301hej ＨＥＪ";  // the first character expands to many
  const std::size_t first = text.find("HEJ");
  const std::size_t second = text.find("hej");
  const std::size_t third = text.find("Ｈ");
  EXPECT_EQ(tokenizer->added_tokens_in(text),
            (Ranges{{first, first + 3}, {second, second + 3}, {third, third + 9}}));
  const auto count = [&](const Ranges& ranges) {
    const Ids ids = literal(*tokenizer, text, ranges);
    return std::count(ids.begin(), ids.end(), 260);
  };
  EXPECT_EQ(count({}), 3);
  EXPECT_EQ(count({{first + 2, first + 3}}), 2);
  EXPECT_EQ(count({{second, second + 1}}), 2);
  EXPECT_EQ(count({{third + 8, third + 9}}), 2);
  EXPECT_EQ(count({{0, first}}), 3);
  EXPECT_EQ(count({{0, text.size()}}), 0);
  for (const TextRange& range : tokenizer->added_tokens_in(text)) EXPECT_EQ(count({range}), 2);
}

PipelineTokenizer gguf(std::string_view model) {
  const auto bytes = test::Gguf()
                         .text("tokenizer.ggml.model", model)
                         .text("tokenizer.ggml.pre", "gpt-2")
                         .texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<", "s", ">",
                                                          "a", "▁", "Ġ", "<s", "▁<", "Ġ<", "aa"})
                         .array("tokenizer.ggml.token_type", test::kI32,
                                std::vector<std::int32_t>{2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4})
                         .array("tokenizer.ggml.scores", test::kF32,
                                std::vector<float>{0, 0, 0, -9, -9, -9, -9, -9, -9, -2, -1, -1, 0})
                         .texts("tokenizer.ggml.merges", {"Ġ <"})
                         .value("tokenizer.ggml.add_bos_token", test::kBool, std::uint8_t{0})
                         .bytes();
  return PipelineTokenizer(read_gguf_vocabulary(*parse_gguf(bytes, "test.gguf"), "test.gguf"));
}

TEST(LiteralText, GgufVocabularies) {
  const PipelineTokenizer bytes = gguf("gpt2");
  EXPECT_EQ(bytes.encode("a <s>aa", false), (Ids{6, 8, 1, 12}));
  EXPECT_EQ(literal(bytes, "a <s>aa", {{2, 5}}), (Ids{6, 11, 4, 5, 12}));
  EXPECT_EQ(literal(bytes, "a <s>aa", {{2, 3}, {5, 6}}), (Ids{6, 11, 4, 5, 6, 6}));
  EXPECT_EQ(literal(bytes, "<s>", {{0, 3}}), (Ids{3, 4, 5}));
  EXPECT_EQ(bytes.added_tokens_in("a <s>aa"), (Ranges{{2, 5}, {5, 7}}));
  const PipelineTokenizer pieces = gguf("llama");
  EXPECT_EQ(pieces.encode("a <s>a", false), (Ids{7, 6, 7, 1, 7, 6}));
  EXPECT_EQ(literal(pieces, "a <s>a", {{2, 5}}), (Ids{7, 6, 10, 4, 5, 6}));
  EXPECT_EQ(literal(pieces, "<s><s>", {{0, 3}}), (Ids{10, 4, 5, 1}));
  EXPECT_EQ(pieces.added_tokens_in("<s><s>"), (Ranges{{0, 3}, {3, 6}}));
  EXPECT_TRUE(pieces.added_tokens_in("< s>").empty());
}

}  // namespace
}  // namespace outrider
