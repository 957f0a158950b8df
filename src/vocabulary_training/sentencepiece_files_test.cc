// SPDX-License-Identifier: Apache-2.0
// SentencePiece's own model files, as read by this library, compared with SentencePiece's encoder
// and decoder: models trained here, of both kinds and with every text transformation, on mixtures
// of odd texts.
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <random>
#include <unordered_map>

#include "tests/support/temporary_directory.h"
#include "tokenizer/formats/sentencepiece_parts.h"
#include "tokenizer/texts/utf8.h"
#include "vocabulary_training/test_texts.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<TokenId>;
using Arguments = std::unordered_map<std::string, std::string>;

struct Setting {
  const char* name;
  Arguments arguments;
};

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = {
      {"defaults", {}},
      {"identity", {{"normalization_rule_name", "identity"}, {"byte_fallback", "true"}}},
      {"blanks stay",
       {{"remove_extra_whitespaces", "false"}, {"allow_whitespace_only_pieces", "true"}}},
      {"no prefix", {{"add_dummy_prefix", "false"}, {"remove_extra_whitespaces", "false"}}},
      {"suffix", {{"treat_whitespace_as_suffix", "true"}}},
      {"folded case", {{"normalization_rule_name", "nmt_nfkc_cf"}, {"split_digits", "true"}}},
      {"symbols",
       {{"user_defined_symbols", "<sep>,<a b>,ha,aha,--,▁▁"},
        {"control_symbols", "<ctl>"},
        {"pad_id", "3"}}},
      {"symbols and bytes",
       {{"user_defined_symbols", "<sep>,ha,aha,--"},
        {"byte_fallback", "true"},
        {"normalization_rule_name", "identity"},
        {"remove_extra_whitespaces", "false"}}},
  };
  return all;
}

std::string train(const std::string& kind, const fs::path& text, const Arguments& more) {
  Arguments arguments = {
      {"model_type", kind},          {"input", text.string()},       {"vocab_size", "420"},
      {"hard_vocab_limit", "false"}, {"character_coverage", "0.99"}, {"num_threads", "1"},
      {"minloglevel", "3"}};
  for (const auto& [name, value] : more) arguments[name] = value;
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, nullptr, &model);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return model;
}

const char* const kOddTexts[] = {
    "",           " ",          "   ",          "a",          " a b  ",
    "\n",         "\t\r\n",     "1234",         "000",        "3.14",
    "<0x41>",     "▁",          "▁▁a",          "你好，世界", "😀👩‍🚀",
    "naïve",      "cafe\u0301", "ﬁ½Ⅷ",          "ＡＢＣ",     "\u3000\u00a0",
    "\u200b",     "------",     "ha ha ha",     "hahaha",     "<sep>",
    "<sep><sep>", "<a b>",      "aha haha",     "х у й",      "العربية",
    "<",          "'\"`\\/",    "aaaaaaaaaaaa", "\ufeff",     "é\u0301\u0302"};

// A text's tokens combined: the sum of their scores, and their spelling. Among equal sums, releases
// of SentencePiece choose differently (tokenizer/merging/unigram.h).
struct Way {
  double sum = 0;
  std::string spelled;
};

Way way_of(const sentencepiece::SentencePieceProcessor& processor, const Ids& ids) {
  Way way;
  for (const TokenId id : ids) {
    way.sum += static_cast<double>(processor.GetScore(id));
    way.spelled += processor.IdToPiece(id);
  }
  return way;
}

struct Comparison {
  std::size_t n_texts = 0;
  std::size_t n_tokens = 0;
  std::size_t n_equal_sums = 0;
};

void compare(const PipelineTokenizer& ours, const sentencepiece::SentencePieceProcessor& theirs,
             const std::string& text, Comparison& comparison) {
  const Ids ids = ours.encode(text, false);
  Ids expected;
  ASSERT_TRUE(theirs.Encode(text, &expected).ok());
  ++comparison.n_texts;
  comparison.n_tokens += ids.size();
  if (ids != expected) {
    const Way here = way_of(theirs, ids);
    const Way there = way_of(theirs, expected);
    // Single precision, sums of some hundreds: 2^-24 of that per token.
    EXPECT_NEAR(here.sum, there.sum, 1e-4 * static_cast<double>(ids.size() + 1));
    EXPECT_EQ(here.spelled, there.spelled) << text;
    ++comparison.n_equal_sums;
  }
  // Unknown tokens become nothing here and a sign there.
  std::erase_if(expected, [&](TokenId id) { return theirs.IsUnknown(id); });
  std::string decoded;
  ASSERT_TRUE(theirs.Decode(expected, &decoded).ok());
  EXPECT_EQ(ours.decode(expected), decoded) << text;
}

TEST(SentencePieceFiles, EqualSentencePiece) {
  const test::TemporaryDirectory root;
  const fs::path file = root.path() / "text";
  std::string text = test::made_up_text(300);
  for (int line = 0; line < 40; ++line) text += "    ha ha haha ------ aaaa  x   000 00\n";
  test::write_bytes(file, text);
  std::mt19937 random(5);
  for (const std::string kind : {"unigram", "bpe"}) {
    for (const Setting& setting : settings()) {
      SCOPED_TRACE(kind + ", " + setting.name);
      const std::string model = train(kind, file, setting.arguments);
      sentencepiece::SentencePieceProcessor theirs;
      ASSERT_TRUE(theirs.LoadFromSerializedProto(model).ok());
      const PipelineTokenizer ours(
          sentencepiece_parts(parse_sentencepiece_model(model, "test"), "test"));
      Comparison comparison;
      for (const char* const odd : kOddTexts) compare(ours, theirs, odd, comparison);
      compare(ours, theirs, text, comparison);
      for (int mixture = 0; mixture < 400; ++mixture) {
        std::string mixed;
        for (unsigned n = random() % 12; n > 0; --n) {
          mixed += kOddTexts[random() % std::size(kOddTexts)];
          if (random() % 2 == 0) mixed += text.substr(random() % 2000, random() % 9);
          if (random() % 3 == 0) mixed.append(random() % 6, " a-\nh"[random() % 5]);
        }
        compare(ours, theirs, repair_utf8(mixed), comparison);
      }
      EXPECT_GT(comparison.n_tokens, 10000u);
      // SentencePiece 0.1.97 differs in at most 49 of 436, the newest in none.
      EXPECT_LE(comparison.n_equal_sums, kind == "bpe" ? 0u : comparison.n_texts / 5);
      // Ids in any order, as a model may generate them.
      for (int list = 0; list < 300; ++list) {
        Ids ids;
        for (unsigned n = 1 + random() % 12; n > 0; --n) {
          const auto id =
              static_cast<TokenId>(random() % static_cast<unsigned>(theirs.GetPieceSize()));
          if (!theirs.IsControl(id) && !theirs.IsUnknown(id)) ids.push_back(id);
        }
        std::string decoded;
        ASSERT_TRUE(theirs.Decode(ids, &decoded).ok());
        EXPECT_EQ(ours.decode(ids), decoded);
      }
    }
  }
}

}  // namespace
}  // namespace outrider
