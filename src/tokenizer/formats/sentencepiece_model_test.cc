// SPDX-License-Identifier: Apache-2.0
// Reading SentencePiece's model files: fields and their defaults, broken files, and unsupported
// features.
#include "tokenizer/formats/sentencepiece_model.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "io/test_files.h"
#include "tokenizer/formats/sentencepiece_parts.h"
#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using test::Ids;
using test::Protobuf;
using test::SentencePieces;

SentencePieces good_pieces() {
  return SentencePieces()
      .piece("<unk>", 0, 2)
      .piece("<s>", 0, 3)
      .piece("</s>", 0, 3)
      .piece("▁", -2)
      .piece("a", -3)
      .piece("▁a", -4)
      .piece("<user>", 0, 4);
}

PipelineTokenizer make(const SentencePieces& file, const SentencePieceSurroundings& around = {}) {
  return PipelineTokenizer(
      sentencepiece_parts(parse_sentencepiece_model(file.bytes(), "test"), "test", around));
}

TEST(SentencePieceModel, DefaultsAreTheFormats) {
  const SentencePieceModel model = parse_sentencepiece_model(good_pieces().bytes(), "test");
  EXPECT_EQ(model.pieces.size(), 7u);
  EXPECT_EQ(model.pieces[4].text, "a");
  EXPECT_EQ(model.pieces[4].score, -3.0f);
  EXPECT_EQ(model.pieces[4].type, PieceType::kNormal);
  EXPECT_EQ(model.pieces[6].type, PieceType::kUserDefined);
  EXPECT_EQ(model.kind, SentencePieceModel::Kind::kUnigram);
  EXPECT_EQ(model.beginning, "<s>");
  EXPECT_EQ(model.end, "</s>");
  EXPECT_TRUE(model.add_blank && model.single_blanks && model.mark_blanks);
  EXPECT_FALSE(model.byte_fallback || model.blank_is_suffix);
  const PipelineTokenizer tokenizer = make(good_pieces());
  EXPECT_EQ(tokenizer.encode(" a  a ", true), (Ids{5, 5}));
  EXPECT_EQ(tokenizer.bos_token(), 1);
  EXPECT_EQ(tokenizer.eos_token(), 2);
  EXPECT_TRUE(tokenizer.is_special(0) && tokenizer.is_special(1));
  EXPECT_FALSE(tokenizer.is_special(6));
  EXPECT_TRUE(tokenizer.is_added(6));
}

TEST(SentencePieceModel, FieldsAreRead) {
  SentencePieces file = good_pieces();
  file.trainer(Protobuf()
                   .text(1, "some/text")
                   .integer(3, 2)
                   .integer(24, 1)
                   .text(46, "</s>")
                   .text(47, "<s>"))
      .normalizer(Protobuf()
                      .text(2, test::charsmap({{"b", "a"}}))
                      .integer(3, 1)
                      .integer(4, 0)
                      .integer(5, 1));
  const PipelineTokenizer tokenizer = make(file);
  EXPECT_EQ(tokenizer.encode("b  b", false), (Ids{4, 3, 5, 3}));
  EXPECT_EQ(tokenizer.bos_token(), 2);
  EXPECT_EQ(tokenizer.eos_token(), 1);
}

// Text that spells a control token becomes that token; user-defined symbols need no blanks.
TEST(SentencePieceModel, SpelledTokens) {
  for (const int kind : {1, 2}) {
    SentencePieces file = good_pieces();
    file.trainer(Protobuf().integer(3, kind));
    const PipelineTokenizer tokenizer = make(file);
    EXPECT_EQ(tokenizer.encode("a</s>a", false), (Ids{5, 2, 5}));
    EXPECT_EQ(tokenizer.encode("a<user>a", false), (Ids{5, 6, 4}));
    // In a literal range they are text, here without pieces.
    const std::vector<TextRange> literal = {{1, 7}};
    EXPECT_EQ(tokenizer.encode_with_literals("a<user>a", false, literal), (Ids{5, 0, 4})) << kind;
  }
}

TEST(SentencePieceModel, AddedTokensOfOtherFiles) {
  const std::vector<AddedToken> added = {
      {.id = 9, .content = "<|im_end|>", .rstrip = true, .special = true},
      {.id = 4, .content = "a", .special = true}};
  const PipelineTokenizer tokenizer = make(good_pieces(), {.added = added});
  EXPECT_EQ(tokenizer.vocabulary_size(), 10);
  EXPECT_FALSE(tokenizer.has(8));
  EXPECT_EQ(tokenizer.encode("<|im_end|>  a", false), (Ids{9, 4}));
  EXPECT_TRUE(tokenizer.is_special(4));
  EXPECT_EQ(tokenizer.decode(Ids{9, 5}), "a");
  EXPECT_EQ(tokenizer.decode(Ids{5, 9, 5}, true), "a<|im_end|> a");
}

TEST(SentencePieceModel, BlanksBetweenAddedTokens) {
  using Blank = SentencePieceSurroundings::Blank;
  SentencePieces file = good_pieces();
  file.normalizer(Protobuf().integer(4, 0));
  const auto encoded = [&](Blank blank, const std::string& text) {
    return make(file, {.added = {}, .blank = blank}).encode(text, false);
  };
  EXPECT_EQ(encoded(Blank::kEachStretch, "a</s>a a"), (Ids{5, 2, 5, 5}));
  EXPECT_EQ(encoded(Blank::kText, "a</s>a a"), (Ids{5, 2, 4, 5}));
  EXPECT_EQ(encoded(Blank::kText, "</s>a"), (Ids{2, 4}));
  EXPECT_EQ(encoded(Blank::kText, " a"), (Ids{5}));
  EXPECT_EQ(encoded(Blank::kNone, "a</s>a a"), (Ids{4, 2, 4, 5}));
  EXPECT_EQ(make(file, {.added = {}, .blank = Blank::kText}).decode(Ids{5, 5}), "a a");
  EXPECT_EQ(make(file, {.added = {}, .blank = Blank::kNone}).decode(Ids{5, 5}), " a a");
}

std::string error_of(const std::string& bytes) {
  try {
    sentencepiece_parts(parse_sentencepiece_model(bytes, "bad.model"), "bad.model");
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("bad.model"), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), 300u) << message;
    return message;
  }
  return "none";
}

TEST(SentencePieceModel, WhatCannotBeRead) {
  struct Broken {
    const char* name;
    std::string bytes;
    const char* says;
  };
  const float infinity = std::numeric_limits<float>::infinity();
  const auto with = [](auto&& change) {
    SentencePieces file = good_pieces();
    change(file);
    return file.bytes();
  };
  const auto trainer = [&](const Protobuf& spec) {
    return with([&](SentencePieces& file) { file.trainer(spec); });
  };
  const std::string good = good_pieces().bytes();
  EXPECT_EQ(error_of(good), "none");
  std::vector<Broken> all = {
      {"nothing", "", "some pieces"},
      {"cut off", good.substr(0, good.size() - 3), "more bytes"},
      {"JSON", "{\"version\": \"1.0\"}", "bad.model"},
      {"ranks of tiktoken", "IQ== 0\nIg== 1\n", "tiktoken"},
      {"no unknown piece", SentencePieces().piece("a", 0).bytes(), "one unknown piece, got 0"},
      {"two unknown pieces", with([](SentencePieces& file) { file.piece("<u>", 0, 2); }), "got 2"},
      {"an empty piece", with([](SentencePieces& file) { file.piece("", 0); }), "piece 7"},
      {"a piece of bad bytes", with([](SentencePieces& file) { file.piece("\xFF", 0); }), "UTF-8"},
      {"a piece twice", with([](SentencePieces& file) { file.piece("a", 0); }), "every token once"},
      {"a long piece", with([](SentencePieces& file) { file.piece(std::string(2049, 'a'), 0); }),
       "2048 bytes"},
      {"a score that is none", with([&](SentencePieces& file) { file.piece("b", infinity); }),
       "finite"},
      {"a type that is none", with([](SentencePieces& file) { file.piece("b", 0, 7); }),
       "from 1 to 6"},
      {"words", trainer(Protobuf().integer(3, 3)), "words (3)"},
      {"characters", trainer(Protobuf().integer(3, 4)), "characters (4)"},
      {"a kind that is none", trainer(Protobuf().integer(3, 9)), "got 9"},
      {"bytes that are missing", trainer(Protobuf().integer(35, 1)), "256 byte pieces"},
      {"bytes that should not be", with([](SentencePieces& file) { file.piece("<0x41>", 0, 6); }),
       "no byte pieces"},
      {"a byte that is none", with([](SentencePieces& file) {
         file.piece("<0x4g>", 0, 6).trainer(Protobuf().integer(35, 1));
       }),
       "<0x4g>"},
      {"an unused piece of BPE",
       with([](SentencePieces& file) { file.piece("b", 0, 5).trainer(Protobuf().integer(3, 2)); }),
       "unused"},
      {"a broken table",
       with([](SentencePieces& file) { file.normalizer(Protobuf().text(2, "abc")); }),
       "precompiled_charsmap"},
      {"a flag of text",
       with([](SentencePieces& file) { file.normalizer(Protobuf().text(3, "yes")); }),
       "normalizer_spec: field 3"},
      {"rewrites of decoded texts",
       good + Protobuf().message(5, Protobuf().text(2, test::charsmap({{"a", "b"}}))).bytes(),
       "denormalizer_spec"},
  };
  for (const Broken& one : all) {
    SCOPED_TRACE(one.name);
    const std::string message = error_of(one.bytes);
    EXPECT_NE(message.find(one.says), std::string::npos) << message;
  }
  // A denormaliser without effect is accepted.
  EXPECT_EQ(error_of(good + Protobuf().message(5, Protobuf().integer(3, 1)).bytes()), "none");
}

TEST(SentencePieceModel, AddedTokensThatDoNotFit) {
  const SentencePieceModel model = parse_sentencepiece_model(good_pieces().bytes(), "test");
  const auto refused = [&](TokenId id, const std::string& content) {
    const std::vector<AddedToken> added = {{.id = id, .content = content}};
    try {
      sentencepiece_parts(model, "bad.model", {.added = added});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_EQ(refused(7, "<x>"), "taken");
  EXPECT_NE(refused(4, "<x>").find("id 4"), std::string::npos);  // the id of another piece
  EXPECT_NE(refused(5, "a").find("its piece's id, 4"), std::string::npos);
  EXPECT_NE(refused(1 << 30, "<x>").find("below"), std::string::npos);
}

}  // namespace
}  // namespace outrider
