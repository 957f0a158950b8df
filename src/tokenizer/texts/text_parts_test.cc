// SPDX-License-Identifier: Apache-2.0
// The small parts: UTF-8, the byte-level alphabet, patterns, added tokens.
#include <gtest/gtest.h>

#include "outrider/error.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/patterns/pattern.h"
#include "tokenizer/texts/byte_level.h"
#include "tokenizer/texts/normalizer.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

TEST(Utf8, EveryCodePointThereAndBack) {
  for (char32_t value = 0; value <= 0x10FFFF; ++value) {
    std::string text;
    append_utf8(value, text);
    const bool is_surrogate = value >= 0xD800 && value <= 0xDFFF;
    ASSERT_EQ(is_valid_utf8(text), !is_surrogate) << static_cast<std::uint32_t>(value);
    if (is_surrogate) continue;
    const CodePoint back = code_point_at(text, 0);
    ASSERT_EQ(back.value, value);
    ASSERT_EQ(static_cast<std::size_t>(back.n_bytes), text.size());
    ASSERT_EQ(last_character("x" + text), 1u);
    // Every proper prefix of it is an unfinished character.
    for (std::size_t n = 1; n < text.size(); ++n) {
      const Utf8Scan scan = scan_utf8(std::string_view(text).substr(0, n));
      ASSERT_TRUE(scan.n_valid == 0 && scan.n_bad == n && scan.unfinished)
          << static_cast<std::uint32_t>(value);
    }
  }
}

TEST(Utf8, BadBytesBehindLongAscii) {
  for (std::size_t n = 0; n < 40; ++n) {
    const std::string text = std::string(n, 'a') + "\x80" + std::string(20, 'b');
    const Utf8Scan scan = scan_utf8(text);
    EXPECT_TRUE(scan.n_valid == n && scan.n_bad == 1 && !scan.unfinished) << n;
  }
}

TEST(ByteLevel, EveryByteThereAndBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
  std::string spelling;
  append_byte_level(bytes, spelling);
  EXPECT_TRUE(is_valid_utf8(spelling));
  EXPECT_EQ(spelling.substr(0, 2), "\xC4\x80");             // U+0100 for byte 0
  EXPECT_NE(spelling.find("\xC4\xA0"), std::string::npos);  // U+0120 for the blank
  std::string back;
  EXPECT_TRUE(append_bytes_of(spelling, back));
  EXPECT_EQ(back, bytes);
  EXPECT_FALSE(append_bytes_of("a b", back));  // the blank itself is outside the alphabet
  EXPECT_EQ(back, bytes);
}

std::vector<std::string> find(const Pattern& pattern, const std::string& text) {
  MatchScratch scratch;
  std::vector<TextRange> ranges;
  pattern.find_all(text, scratch, ranges);
  std::vector<std::string> found;
  for (const TextRange& range : ranges) {
    found.push_back(text.substr(range.begin, range.end - range.begin));
  }
  return found;
}

TEST(Pattern, FindsFromLeftToRight) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(find(Pattern::literal("aa"), "aaaaa"), (Strings{"aa", "aa"}));
  EXPECT_EQ(find(Pattern::literal(""), "aaa"), Strings{});
  EXPECT_EQ(find(Pattern::regex("a*", "t"), "baac"), (Strings{"", "aa", ""}));
  EXPECT_EQ(find(Pattern::regex("é?", "t"), "éx"), (Strings{"é", ""}));
  EXPECT_EQ(find(Pattern::regex(R"(\p{L}+|\p{N}+)", "t"), "añ1٢!"), (Strings{"añ", "1٢"}));
  EXPECT_EQ(find(Pattern::regex("(?i:'ll)", "t"), "'LL 'Ll"), (Strings{"'LL", "'Ll"}));
  EXPECT_EQ(find(Pattern::regex("^b$", "t"), "a\nb\nc"), Strings{"b"});
}

TEST(Pattern, TranslatesTheDialect) {
  const auto translate = [](std::string_view pattern) { return translate_pattern(pattern, "t"); };
  // Patterns with the same meaning in both are unchanged.
  for (const char* const same : {"a|b*c+?", R"(\p{Lu}\P{N}\x{41}\\)", "[^a-z\\]\\[]",
                                 "(?i:x)(?<n>y)(?!z)", "x{2,3}", "x{a}", R"(\p{L}{2})"}) {
    EXPECT_EQ(translate(same), same);
  }
  EXPECT_EQ(translate("x{2}+"), "(?:x{2})+");
  EXPECT_EQ(translate("ab{1,3}+"), "a(?:b{1,3})+");
  EXPECT_EQ(translate("(ab)c[de]{1,3}+"), "(ab)c(?:[de]{1,3})+");
  EXPECT_EQ(translate("x(ab){2}+"), "x(?:(ab){2})+");
  EXPECT_EQ(translate(R"(\p{N}{1,3}+)"), R"((?:\p{N}{1,3})+)");
  EXPECT_EQ(translate("x{,3}"), "x{0,3}");
  EXPECT_EQ(translate(R"(\u00e9)"), R"(\x{00e9})");
  EXPECT_EQ(translate("(?m:.)"), "(?s:.)");
  EXPECT_EQ(translate("(?im-x)."), "(?is-x).");
  for (const char* const refused : {"[a[b]]", "[a&&b]", R"([\W])", R"(\u12)"}) {
    EXPECT_THROW(translate(refused), Error) << refused;
  }
}

TEST(Pattern, WhiteSpaceIsUnicodes) {
  const Pattern space = Pattern::regex(R"(\s)", "t");
  const Pattern other = Pattern::regex(R"(\S)", "t");
  const Pattern other_in_class = Pattern::regex(R"([\S])", "t");
  for (char32_t value = 0; value < 0x20000; ++value) {
    if (value >= 0xD800 && value <= 0xDFFF) continue;
    std::string text;
    append_utf8(value, text);
    ASSERT_EQ(find(space, text).size(), is_white_space(value) ? 1u : 0u)
        << static_cast<std::uint32_t>(value);
    if (value >= 0x3100) continue;
    ASSERT_EQ(find(other, text).size(), is_white_space(value) ? 0u : 1u)
        << static_cast<std::uint32_t>(value);
    ASSERT_EQ(find(other_in_class, text).size(), is_white_space(value) ? 0u : 1u)
        << static_cast<std::uint32_t>(value);
  }
}

TEST(Normalizer, LongRunsOfMarksAreOrderedAsShortOnes) {
  // Alternating marks of two classes, below and above the length from which they are sorted first.
  const Normalizer nfd({UnicodeForm{false, false}});
  MatchScratch scratch;
  for (const std::size_t n : {3, 15, 16, 17, 200}) {
    std::string text = "a";
    std::string expected = "a";
    for (std::size_t i = 0; i < n; ++i) text += "\xCC\x81\xCC\xA3";  // U+0301, U+0323
    for (std::size_t i = 0; i < n; ++i) expected += "\xCC\xA3";
    for (std::size_t i = 0; i < n; ++i) expected += "\xCC\x81";
    nfd.apply(text, scratch);
    EXPECT_EQ(text, expected) << n;
  }
}

std::string show(const AddedTokens& tokens, const std::string& text) {
  AddedTokens::Scratch scratch;
  std::vector<AddedTokens::Span> spans;
  tokens.split(text, {}, scratch, spans);
  std::string shown;
  for (const auto& span : spans) {
    const std::string part = text.substr(span.range.begin, span.range.end - span.range.begin);
    shown += span.id == kNoToken ? "(" + part + ")" : std::to_string(span.id) + "[" + part + "]";
  }
  return shown;
}

TEST(AddedTokens, LongestFromLeftToRight) {
  AddedTokens tokens;
  tokens.add({.id = 1, .content = "ab"});
  tokens.add({.id = 2, .content = "abcd"});
  tokens.add({.id = 3, .content = "bcde"});
  tokens.add({.id = 4, .content = "ab"});  // never found
  tokens.finish();
  EXPECT_EQ(show(tokens, ""), "");
  EXPECT_EQ(show(tokens, "xyz"), "(xyz)");
  EXPECT_EQ(show(tokens, "abcde"), "2[abcd](e)");
  EXPECT_EQ(show(tokens, "abcx"), "1[ab](cx)");
  EXPECT_EQ(show(tokens, "xbcdeab"), "(x)3[bcde]1[ab]");
}

TEST(AddedTokens, StripsAndWords) {
  AddedTokens tokens;
  tokens.add({.id = 1, .content = "cat", .single_word = true});
  tokens.add({.id = 2, .content = "<l>", .lstrip = true});
  tokens.add({.id = 3, .content = "<r>", .rstrip = true});
  tokens.finish();
  EXPECT_EQ(show(tokens, "cat cats concat cat."), "1[cat]( cats concat )1[cat](.)");
  EXPECT_EQ(show(tokens, "a \t<l> b"), "(a)2[ \t<l>]( b)");
  EXPECT_EQ(show(tokens, "a <r> \xC2\xA0 b"), "(a )3[<r> \xC2\xA0 ](b)");
  EXPECT_EQ(show(tokens, "<r>  <l>"), "3[<r>  ]2[<l>]");
}

}  // namespace
}  // namespace outrider
