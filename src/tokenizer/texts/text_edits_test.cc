// SPDX-License-Identifier: Apache-2.0
// Where a text's bytes are after it was rewritten.
#include "tokenizer/texts/text_edits.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "io/test_files.h"
#include "tokenizer/test_tokenizers.h"
#include "tokenizer/texts/text_map.h"

namespace outrider {
namespace {

void expect_range(const TextRange& range, std::size_t begin, std::size_t end) {
  EXPECT_EQ(range.begin, begin);
  EXPECT_EQ(range.end, end);
}

// ab[cd]e -> X + ab[Y]e: an insertion, a change and unchanged text.
TEST(TextEdits, OneOfEachKind) {
  TextEdits edits;
  edits.add({0, 0}, {0, 1});                   // X inserted before "ab"
  edits.add({2, 4}, {3, 4});                   // "cd" became "Y"
  edits.add({6, 8}, {6, 6});                   // "gh" dropped after "ef"
  expect_range(edits.to_after({0, 1}), 0, 2);  // an insertion before it belongs to it
  expect_range(edits.to_after({1, 2}), 2, 3);
  expect_range(edits.to_after({1, 3}), 2, 4);
  expect_range(edits.to_after({3, 4}), 3, 4);
  expect_range(edits.to_after({4, 6}), 4, 6);
  expect_range(edits.to_after({6, 7}), 6, 6);
  expect_range(edits.to_after({5, 9}), 5, 7);
  expect_range(edits.to_before({0, 1}), 0, 0);
  expect_range(edits.to_before({0, 2}), 0, 1);
  expect_range(edits.to_before({1, 3}), 0, 2);
  expect_range(edits.to_before({3, 4}), 2, 4);
  expect_range(edits.to_before({5, 6}), 5, 6);  // without the dropped text
  expect_range(edits.to_before({6, 7}), 8, 9);
  expect_range(edits.to_before({5, 7}), 5, 9);
  expect_range(TextEdits().to_after({3, 5}), 3, 5);
}

// A random rewriting, letter by letter, compared with a search step by step.
TEST(TextEdits, RandomRewritings) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    struct Step {
      TextRange before, after;
      bool is_edit;
    };
    std::vector<Step> steps;
    TextEdits edits;
    std::size_t before = 0;
    std::size_t after = 0;
    for (std::size_t i = random() % 20 + 1; i > 0; --i) {
      const bool is_edit = random() % 2 == 0;
      const std::size_t n = random() % 4 + 1;
      const std::size_t n_before = is_edit ? random() % 3 : n;
      const std::size_t n_after = is_edit ? random() % 3 : n;
      if (n_before + n_after == 0) continue;
      steps.push_back({{before, before + n_before}, {after, after + n_after}, is_edit});
      if (is_edit) edits.add(steps.back().before, steps.back().after);
      before += n_before;
      after += n_after;
    }
    // Every other time the later text is truncated.
    if (round % 2 == 1) {
      const std::size_t kept = random() % (after + 1);
      std::vector<Step> shorter;
      std::size_t dropped = 0;  // how much is dropped from there on, of the text before
      for (Step step : steps) {
        if (step.after.begin >= kept) break;
        if (step.after.end > kept) {
          const std::size_t n_lost = step.after.end - kept;
          step.after.end = kept;
          if (!step.is_edit) step.before.end -= n_lost;
        }
        dropped = step.before.end;
        shorter.push_back(step);
      }
      edits.cut_after(before, kept);
      after = kept;
      if (dropped < before) shorter.push_back({{dropped, before}, {kept, kept}, true});
      steps = shorter;
    }
    // The part of the other text that corresponds to characters [begin, end), step by step.
    const auto walk = [&](const TextRange& range, bool forward) {
      bool found = false;
      TextRange moved{0, 0};
      for (const Step& step : steps) {
        const TextRange from = forward ? step.before : step.after;
        const TextRange to = forward ? step.after : step.before;
        const bool is_put_in = from.begin == from.end;
        if (is_put_in ? (from.begin < range.begin || from.begin >= range.end ||
                         (!forward && from.begin == range.begin))
                      : (from.end <= range.begin || from.begin >= range.end)) {
          continue;
        }
        TextRange part = to;
        if (!step.is_edit) {
          part.begin = to.begin + (std::max(range.begin, from.begin) - from.begin);
          part.end = to.begin + (std::min(range.end, from.end) - from.begin);
        }
        if (!found) moved = part;
        moved.end = part.end;
        found = true;
      }
      return moved;
    };
    for (std::size_t begin = 0; begin < before; ++begin) {
      for (std::size_t end = begin + 1; end <= before; ++end) {
        const TextRange expected = walk({begin, end}, true);
        EXPECT_EQ(edits.to_after({begin, end}), expected) << begin << " to " << end;
      }
    }
    for (std::size_t begin = 0; begin < after; ++begin) {
      for (std::size_t end = begin + 1; end <= after; ++end) {
        const TextRange expected = walk({begin, end}, false);
        EXPECT_EQ(edits.to_before({begin, end}), expected) << begin << " to " << end;
      }
    }
  }
}

// Every step of a normaliser reports its edits: text reported as equal is equal.
TEST(NormalizedText, EveryStepSaysWhatItChanged) {
  const auto rewrites = std::make_shared<const Charsmap>(
      test::charsmap({{"\u00c9", "E"}, {"Q", ""}, {"\ufdfa", "abc d"}, {"\u200b", " "}}), "test");
  SentencePieceRules rules;
  rules.map = rewrites;
  rules.add_blank = false;
  rules.single_blanks = false;
  const std::vector<NormalizerStep> kinds = {PrependText{"_"},
                                             ReplaceAll{Pattern::literal(" "), "\u2581"},
                                             ReplaceAll{Pattern::regex("a|(?=b)", "test"), "xyz"},
                                             UnicodeForm{true, false},
                                             UnicodeForm{false, false},
                                             UnicodeForm{true, true},
                                             UnicodeForm{false, true},
                                             LowercaseText{},
                                             StripWhitespace{true, true},
                                             StripMarks{},
                                             SpellBytes{},
                                             MapGraphemes{rewrites},
                                             CleanControls{},
                                             rules};
  constexpr std::string_view kCharacters[] = {
      " ",      "a",      "b",      "Q",      "\u00c9", "e\u0301", "\u0301",     "\u0323", "\u200b",
      "\ufdfa", "\u212b", "\u0130", "\uac00", "\u11a8", "\u1e9e",  "\U0001f44d", "\t",     "\x01"};
  std::mt19937 random(4);
  MatchScratch scratch;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    const Normalizer normalizer({kinds[kind]});
    for (int round = 0; round < 300; ++round) {
      std::string text;
      for (std::size_t i = random() % 12; i > 0; --i) {
        text += kCharacters[random() % std::size(kCharacters)];
      }
      std::string after = text;
      std::vector<TextEdits> steps;
      normalizer.apply(after, scratch, steps);
      std::string plain = text;
      normalizer.apply(plain, scratch);
      ASSERT_EQ(plain, after) << kind << ": " << text;
      ASSERT_EQ(steps.size(), 1u);
      if (text.empty()) continue;
      EXPECT_EQ(steps[0].to_after({0, text.size()}), (TextRange{0, after.size()})) << text;
      // Each character was changed independently, or is part of a larger edit.
      for (std::size_t at = 0; at < text.size();) {
        const auto n_bytes = static_cast<std::size_t>(code_point_at(text, at).n_bytes);
        const TextRange place{at, at + n_bytes};
        const TextRange became = steps[0].to_after(place);
        at += n_bytes;
        if (became.begin == became.end || steps[0].to_before(became) != place) continue;
        std::string alone = text.substr(place.begin, n_bytes);
        const std::string part = after.substr(became.begin, became.end - became.begin);
        if (part == alone) continue;
        Normalizer({kinds[kind]}).apply(alone, scratch);
        EXPECT_EQ(part, alone) << kind << ": " << text;
      }
    }
  }
}

// SentencePiece's rules drop blanks at both ends of a text and prepend one of their own.
TEST(NormalizedText, SentencePiecesBlanks) {
  const auto map =
      std::make_shared<const Charsmap>(test::charsmap({{"\t", " "}, {"Q", "ab "}}), "test");
  SentencePieceRules rules;
  rules.map = map;
  MatchScratch scratch;
  const auto apply = [&](std::string text, const char* expected) {
    std::vector<TextEdits> steps;
    Normalizer({rules}).apply(text, scratch, steps);
    EXPECT_EQ(text, expected);
    return steps.at(0);
  };
  TextEdits edits = apply(" \tx  y\t ", "\u2581x\u2581y");
  expect_range(edits.to_after({0, 2}), 0, 0);
  expect_range(edits.to_after({2, 3}), 0, 4);  // with the inserted blank
  expect_range(edits.to_after({3, 4}), 4, 7);
  expect_range(edits.to_after({4, 5}), 7, 7);  // the second of two blanks
  expect_range(edits.to_after({5, 6}), 7, 8);
  expect_range(edits.to_after({6, 8}), 8, 8);
  expect_range(edits.to_after({0, 8}), 0, 8);
  expect_range(edits.to_before({3, 4}), 2, 3);
  expect_range(edits.to_before({7, 8}), 5, 6);
  // The output of a rule loses its last blank, and a mark at the text's end is removed, too.
  edits = apply("xQ\u2581 ", "\u2581xab");
  expect_range(edits.to_after({1, 2}), 4, 6);
  expect_range(edits.to_after({2, 5}), 6, 6);
  expect_range(edits.to_before({4, 6}), 1, 2);
  edits = apply(" \t ", "");
  expect_range(edits.to_after({0, 3}), 0, 0);
  rules.blank_is_suffix = true;
  edits = apply(" x ", "x\u2581");
  expect_range(edits.to_after({1, 2}), 0, 1);
  expect_range(edits.to_after({2, 3}), 1, 1);
  expect_range(edits.to_before({0, 1}), 1, 2);
}

// The source text of an added token, encoded separately, gives that token again.
TEST(NormalizedText, TokensAreFoundWhereTheyCameFrom) {
  test::Json document = test::byte_level_document(test::byte_vocabulary(), test::Json::array());
  using test::Json;
  document["normalizer"] = {
      {"type", "Sequence"},
      {"normalizers",
       Json::array(
           {{{"type", "NFKD"}},
            {{"type", "StripAccents"}},
            {{"type", "Lowercase"}},
            {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}})}};
  document["added_tokens"] = Json::array(
      {{{"id", 256}, {"content", "ab"}, {"special", false}, {"normalized", true}},
       {{"id", 257}, {"content", "\u2581e"}, {"special", false}, {"normalized", true}}});
  const auto tokenizer = test::make_tokenizer(document);
  constexpr std::string_view kCharacters[] = {"a", "B",      "\u00c9", "\u0301",
                                              " ", "\u3000", "\uff21"};
  std::mt19937 random(5);
  std::size_t n_found = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t i = random() % 12; i > 0; --i) {
      text += kCharacters[random() % std::size(kCharacters)];
    }
    std::size_t n_tokens = 0;
    for (const TokenId id : tokenizer->encode(text, false)) n_tokens += id >= 256;
    const std::vector<TextRange> places = tokenizer->added_tokens_in(text);
    EXPECT_EQ(places.size(), n_tokens) << text;
    for (const TextRange& place : places) {
      const std::string part = text.substr(place.begin, place.end - place.begin);
      const auto ids = tokenizer->encode(part, false);
      EXPECT_TRUE(ids.size() == 1 && ids[0] >= 256) << text << ": " << part;
      // And none is found there if everything is literal.
      for (const TokenId id : tokenizer->encode_with_literals(text, false, std::vector{place})) {
        n_tokens -= id >= 256;
      }
      EXPECT_GE(n_tokens, 1u) << text;
      n_tokens = places.size();
    }
    n_found += places.size();
  }
  EXPECT_GT(n_found, 500u);
}

}  // namespace
}  // namespace outrider
