// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/translate_vocabulary.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using test::Ids;
using test::Json;

Json added(TokenId id, const char* content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

// Bytes 0 to 255, "Ġthe" 258, "he" 256, "Ġt" 257, and an end, 259.
std::shared_ptr<const Tokenizer> byte_level() {
  Json vocab = test::byte_vocabulary();
  vocab["he"] = 256;
  vocab["Ġt"] = 257;
  vocab["Ġthe"] = 258;
  Json document = test::byte_level_document(vocab, {"h e", "Ġ t", "Ġt he"});
  document["added_tokens"] = {added(259, "<|end|>")};
  return test::make_tokenizer(document);
}

// In SentencePiece's style: blanks are part of words, one is prepended to a text, and a few bytes
// have tokens. Start, end, and a token that only it has.
std::shared_ptr<const Tokenizer> pieces() {
  const Json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2},    {"<0x0A>", 3},  {"▁", 4},
                      {"t", 5},     {"h", 6},   {"e", 7},       {"▁t", 8},      {"he", 9},
                      {"▁the", 10}, {"!", 11},  {"<0xC3>", 12}, {"<0xA4>", 13}, {"hee", 14}};
  return test::make_tokenizer(
      {{"version", "1.0"},
       {"added_tokens", {added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")}},
       {"normalizer",
        {{"type", "Sequence"},
         {"normalizers",
          {{{"type", "Prepend"}, {"prepend", "▁"}},
           {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}}}}}},
       {"pre_tokenizer", nullptr},
       {"post_processor",
        {{"type", "TemplateProcessing"},
         {"single",
          {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
           {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
         {"pair", Json::array()},
         {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}}},
       {"decoder",
        {{"type", "Sequence"},
         {"decoders",
          {{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}},
           {{"type", "ByteFallback"}},
           {{"type", "Fuse"}},
           {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
       {"model",
        {{"type", "BPE"},
         {"vocab", vocab},
         {"merges", {"h e", "▁ t", "▁t he", "he e"}},
         {"unk_token", "<unk>"},
         {"byte_fallback", true}}}});
}

VocabularySide side(std::shared_ptr<const Tokenizer> tokenizer, TokenId end) {
  const int n_rows = tokenizer->vocabulary_size();
  return {.tokenizer = std::move(tokenizer), .n_rows = n_rows, .ends = {end}};
}

TEST(TokenBytes, AreWhatATokenAddsWithinAText) {
  EXPECT_EQ(byte_level()->bytes(258), " the");
  EXPECT_EQ(byte_level()->bytes(0xc3), "\xc3");  // part of a character
  EXPECT_EQ(byte_level()->bytes(259), "");
  EXPECT_EQ(pieces()->bytes(10), " the");
  EXPECT_EQ(pieces()->bytes(3), "\n");
  EXPECT_EQ(pieces()->bytes(12), "\xc3");
  EXPECT_EQ(pieces()->bytes(2), "");
  EXPECT_THROW(pieces()->bytes(99), Error);
}

TEST(TranslateVocabulary, SharesEqualBytesWhateverTheirSpelling) {
  const VocabularyTranslation translation =
      translate_vocabulary(side(byte_level(), 259), side(pieces(), 2));
  ASSERT_EQ(translation.spelled.size(), 260u);
  ASSERT_EQ(translation.shared.size(), 15u);
  const auto expect_shared = [&](TokenId target, TokenId drafter) {
    EXPECT_EQ(translation.spelled[static_cast<std::size_t>(target)], Ids{drafter});
    EXPECT_EQ(translation.shared[static_cast<std::size_t>(drafter)], target);
  };
  expect_shared(258, 10);  // " the"
  expect_shared(257, 8);
  expect_shared(256, 9);
  expect_shared('!', 11);
  expect_shared('\n', 3);
  expect_shared(' ', 4);
  expect_shared(0xc3, 12);
  expect_shared(259, 2);  // the end
  EXPECT_EQ(n_shared(translation), 12);
  for (const std::size_t none : {0u, 1u, 14u}) EXPECT_EQ(translation.shared[none], kNoToken);
  // Bytes without a token are translated to a blank.
  EXPECT_EQ(translation.spelled['q'], Ids{4});
}

TEST(TranslateVocabulary, SpellsTheRestInTheLongestPieces) {
  const VocabularyTranslation translation =
      translate_vocabulary(side(pieces(), 2), side(byte_level(), 259));
  EXPECT_EQ(translation.spelled[14], (Ids{256, 'e'}));  // "hee"
  EXPECT_EQ(translation.spelled[10], Ids{258});
  EXPECT_EQ(translation.spelled[1], Ids{' '});  // <s> has no counterpart
  EXPECT_EQ(translation.spelled[2], Ids{259});
}

TEST(TranslateVocabulary, APromptIsReadAsTheDraftersTokenizerCutsIt) {
  const auto target = byte_level();
  const auto drafter = pieces();
  const auto forth = translate_vocabulary(side(target, 259), side(drafter, 2));
  const auto ids = [](const Tokenizer& tokenizer, const char* text) {
    return tokenizer.encode(text, false);
  };
  EXPECT_EQ(forth.read(ids(*target, "the hee!"), true), drafter->encode("the hee!", true));
  // In a continuation, the blank that the tokenizer prepends is the text's own.
  EXPECT_EQ(forth.read(ids(*target, " the!"), false), drafter->encode("the!", false));
  // Within a word its rest is spelled, and then words are split again.
  EXPECT_EQ(forth.read(ids(*target, "hee the!"), false), (Ids{14, 10, 11}));
  const auto back = translate_vocabulary(side(drafter, 2), side(target, 259));
  EXPECT_EQ(back.read(drafter->encode("the hee!", true), true), ids(*target, "the hee!"));
  EXPECT_EQ(back.read(ids(*drafter, "the!"), false), ids(*target, " the!"));
}

TEST(TranslateVocabulary, SpecialTokensWithinATextAreRead) {
  const auto target = pieces();
  const auto drafter = byte_level();
  const auto translation = translate_vocabulary(side(target, 2), side(drafter, 259));
  // An end in the middle of a text, and a start token that the drafter lacks.
  const Ids text = {1, 10, 2, 1, 10, 11};
  const Ids expected = {258, 259, 258, '!'};
  EXPECT_EQ(translation.read(text, false), expected);
  const Ids end_last = {10, 2};
  EXPECT_EQ(translation.read(end_last, false), (Ids{258, 259}));
  // At a text's start comes the drafter's own start token, once.
  const auto back = translate_vocabulary(side(drafter, 259), side(target, 2));
  const Ids ends = {258, 259, 258};
  EXPECT_EQ(back.read(ends, true),
            (Ids{1, 4, 10, 2, 10}));  // the text's own blank, and the prepended one
  const auto own = translate_vocabulary(side(target, 2), side(target, 2));
  EXPECT_EQ(own.read(target->encode("the!", true), true), target->encode("the!", true));
}

TEST(TranslateVocabulary, ATokenizerOfItsOwnIsSharedWhole) {
  const auto tokenizer = byte_level();
  const auto translation = translate_vocabulary(side(tokenizer, 259), side(tokenizer, 259));
  for (TokenId id = 0; id < tokenizer->vocabulary_size(); ++id) {
    EXPECT_EQ(translation.spelled[static_cast<std::size_t>(id)], Ids{id});
    EXPECT_EQ(translation.shared[static_cast<std::size_t>(id)], id);
  }
}

// Matrices often have rows beyond the vocabulary, and sometimes fewer.
TEST(TranslateVocabulary, RowsCount) {
  VocabularySide target = side(byte_level(), 259);
  VocabularySide drafter = side(pieces(), 2);
  target.n_rows = 270;
  drafter.n_rows = 10;  // "▁the" has no row
  const VocabularyTranslation translation = translate_vocabulary(target, drafter);
  EXPECT_EQ(translation.spelled.size(), 270u);
  EXPECT_EQ(translation.spelled[269], Ids{4});
  EXPECT_EQ(translation.shared.size(), 10u);
  EXPECT_EQ(translation.spelled[258], (Ids{8, 9}));  // "▁t", "he"
  EXPECT_TRUE(translation.read(Ids{258}, false).empty());
}

}  // namespace
}  // namespace outrider
