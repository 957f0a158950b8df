// SPDX-License-Identifier: Apache-2.0
// The patterns that cut text into words, in the dialect of tokenizer.json (pattern.h): those of
// GGUF's names for pre-tokenisers (mapped in gguf_patterns.cc), and some as spelled in
// tokenizer.json files, for which there are scanners (pattern_scanner.h).
#ifndef OUTRIDER_TOKENIZER_PATTERNS_CUTTING_PATTERNS_H_
#define OUTRIDER_TOKENIZER_PATTERNS_CUTTING_PATTERNS_H_

#include <string_view>

namespace outrider::cut {

inline constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Line ends with the blanks before them; runs of blanks except the last, which belongs to the next
// word; blanks.
#define OUTRIDER_SPACES R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define OUTRIDER_CONTRACTION R"('(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))"
// Words with one leading character that is neither letter nor digit nor line end.
#define OUTRIDER_LEADING R"([^\r\n\p{L}\p{N}]?)"
#define OUTRIDER_WORD OUTRIDER_LEADING R"(\p{L}+)"
// Other characters with one blank before and the line ends after them.
#define OUTRIDER_OTHERS R"(| ?[^\s\p{L}\p{N}]+[\r\n]*)"
#define OUTRIDER_OTHERS_AND_SLASHES R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*)"

inline constexpr std::string_view kLlama3 =
    OUTRIDER_CONTRACTION "|" OUTRIDER_WORD R"(|\p{N}{1,3})" OUTRIDER_OTHERS OUTRIDER_SPACES;
// Single digits.
inline constexpr std::string_view kQwen2 =
    OUTRIDER_CONTRACTION "|" OUTRIDER_WORD R"(|\p{N})" OUTRIDER_OTHERS OUTRIDER_SPACES;
// No contractions: Turkish suffixes stay whole.
inline constexpr std::string_view kUfakzeka =
    OUTRIDER_WORD R"(|\p{N})" OUTRIDER_OTHERS OUTRIDER_SPACES;
// Combining marks are letters.
inline constexpr std::string_view kQwen35 = OUTRIDER_CONTRACTION
    "|" OUTRIDER_LEADING R"([\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" OUTRIDER_SPACES;
inline constexpr std::string_view kK2Horizon = OUTRIDER_CONTRACTION
    "|" OUTRIDER_LEADING
    R"([\p{L}\p{M}\x{200c}\x{200d}]+|\p{N}{1,3})" OUTRIDER_OTHERS OUTRIDER_SPACES;
// Line ends are separate pieces.
inline constexpr std::string_view kSeedCoder =
    OUTRIDER_CONTRACTION "|" OUTRIDER_WORD R"(|\p{N}| ?[^\s\p{L}\p{N}]+)" OUTRIDER_SPACES;
// Runs of blanks in powers of two.
inline constexpr std::string_view kJais2 = OUTRIDER_CONTRACTION
    "|" OUTRIDER_WORD R"(|\p{N}{1,3})" OUTRIDER_OTHERS
    R"(|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S))"
    R"(|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)";
// Words continue over single blanks.
inline constexpr std::string_view kExaoneMoe = OUTRIDER_CONTRACTION
    "|" OUTRIDER_LEADING
    R"(\p{L}\p{M}*+(?: ?\p{L}\p{M}*+)*+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?)" OUTRIDER_SPACES;
// Upper case comes before lower case within a word: "WordWord" is two words. [^\P{L}a-z]: letters
// but a-z.
inline constexpr std::string_view kTekken = OUTRIDER_LEADING
    R"((?:[^\P{L}a-z]*[^\P{L}A-Z]+|[^\P{L}a-z]+[^\P{L}A-Z]*)|\p{N})" OUTRIDER_OTHERS_AND_SLASHES
        OUTRIDER_SPACES;
// The same with contractions as ends of words.
inline constexpr std::string_view kGpt4o = OUTRIDER_LEADING
    R"((?:[^\P{L}a-z]*[^\P{L}A-Z]+|[^\P{L}a-z]+[^\P{L}A-Z]*)(?:)" OUTRIDER_CONTRACTION
    R"()?|\p{N}{1,3})" OUTRIDER_OTHERS_AND_SLASHES OUTRIDER_SPACES;
// And with combining marks as letters of either case; one may also lead.
#define OUTRIDER_UPPER R"((?:(?![a-z])[\p{L}\p{M}]))"
#define OUTRIDER_LOWER R"((?:(?![A-Z])[\p{L}\p{M}]))"
inline constexpr std::string_view kGraniteMultilingual =
    "(?:" OUTRIDER_LEADING OUTRIDER_UPPER "*" OUTRIDER_LOWER "+|" OUTRIDER_LEADING OUTRIDER_UPPER
    "+" OUTRIDER_LOWER "*)(?:" OUTRIDER_CONTRACTION
    R"()?|\p{N}{1,3})" OUTRIDER_OTHERS_AND_SLASHES OUTRIDER_SPACES;
// Letters and marks of either case.
inline constexpr std::string_view kYoutuWord =
    OUTRIDER_LEADING R"([\p{L}\p{M}]+(?:)" OUTRIDER_CONTRACTION
                     R"()?|\p{N})" OUTRIDER_OTHERS_AND_SLASHES OUTRIDER_SPACES;
inline constexpr std::string_view kTinyAya =
    OUTRIDER_LEADING R"([\p{L}\p{M}]+(?:)" OUTRIDER_CONTRACTION
                     R"()?|\p{N}{1,3})" OUTRIDER_OTHERS_AND_SLASHES OUTRIDER_SPACES;
// Han separately, other letters as words.
#define OUTRIDER_HAN                                                                             \
  R"(\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{f900}-\x{faff}\x{20000}-\x{2a6df}\x{2a700}-\x{2ebef})" \
  R"(\x{2f800}-\x{2fa1f})"
inline constexpr std::string_view kKimiK2 =
    "[" OUTRIDER_HAN "]+|" OUTRIDER_LEADING R"([^\P{L})" OUTRIDER_HAN "]+(?:" OUTRIDER_CONTRACTION
    R"()?|\p{N}{1,3})" OUTRIDER_OTHERS OUTRIDER_SPACES;
// ASCII punctuation with the ASCII word after it, words with marks, punctuation and symbols.
#define OUTRIDER_DEEPSEEK3 \
  R"([!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+)"
inline constexpr std::string_view kDeepseek3 = OUTRIDER_DEEPSEEK3 R"([\r\n]*)" OUTRIDER_SPACES;
inline constexpr std::string_view kSpark = OUTRIDER_DEEPSEEK3 R"(|[\r\n]|\s+(?!\S)|\s+)";

#undef OUTRIDER_DEEPSEEK3
#undef OUTRIDER_HAN
#undef OUTRIDER_LOWER
#undef OUTRIDER_UPPER
#undef OUTRIDER_OTHERS_AND_SLASHES
#undef OUTRIDER_OTHERS
#undef OUTRIDER_WORD
#undef OUTRIDER_LEADING
#undef OUTRIDER_CONTRACTION
#undef OUTRIDER_SPACES

inline constexpr std::string_view kDigit = R"(\p{N})";
inline constexpr std::string_view kDigits = R"(\p{N}+)";
inline constexpr std::string_view kUpToThreeDigits = R"(\p{N}{1,3})";
// Digits in threes from the right; the remainder comes first, with the text before it.
inline constexpr std::string_view kNumberAndTextBefore =
    R"(\P{N}*+(?:\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))?)";
// An empty match before threes of digits that reach the number's end.
inline constexpr std::string_view kBetweenThrees = "(?=([0-9]{3})+(?![0-9]))";
inline constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";
inline constexpr std::string_view kPunctuation = R"([\p{P}$+<=>^~|]+)";
inline constexpr std::string_view kPunctuationAndBacktick = R"([\p{P}$+<=>^~|`]+)";
inline constexpr std::string_view kLineEnd = R"([\r\n])";
// \s+$: if a run of blanks does not match from its first blank, it does not match from a later one.
inline constexpr std::string_view kSpacesAtEnd = R"((?<!\s)\s+$)";
// U+0800 to U+9FA5 and Hangul. No range contains a blank.
inline constexpr std::string_view kEastAsian =
    R"([\x{800}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e})"
    R"(\x{2060}-\x{2fff}\x{3001}-\x{9fa5}\x{ac00}-\x{d7ff}]+)";
inline constexpr std::string_view kHanAndKana = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{30ff}]+)";
inline constexpr std::string_view kYoutuScripts =
    R"([\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+|[\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019})"
    R"(\x{2014}\x{ff1a}\x{ff1b}\x{ff0c}\x{3001}-\x{303f}\x{fe30}-\x{fe4f}]+|[\x{3105}-\x{312f}]+|)"
    R"([\x{4e00}-\x{9fa5}\x{3040}-\x{30ff}]+)";
// Scripts without blanks between words, and Hangul.
inline constexpr std::string_view kAfmoeScripts =
    R"([\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{8c48}-\x{faff}\x{3040}-\x{30ff}\x{ff65}-\x{ff9f})"
    R"(\x{2f00}-\x{2fdf}\x{e40}-\x{e7f}\x{e80}-\x{eff}\x{1780}-\x{17ff}\x{1000}-\x{109f})"
    R"(\x{aa60}-\x{aa7f}\x{a9e0}-\x{a9ff}\x{ac00}-\x{d7af}\x{1100}-\x{11ff}]+)";
// Anything but blanks and the commas and full stops of several scripts.
inline constexpr std::string_view kNoPunctuation =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+)";
inline constexpr std::string_view kLine = R"([^\n]+|\n+)";
inline constexpr std::string_view kSentinel = "<sentinel:[0-9]+>";
inline constexpr std::string_view kImage = "IMGIMG[A-I]{1,4}Z";
inline constexpr std::string_view kIndent = R"([\t\n]|    |  )";
inline constexpr std::string_view kOnePunctuation = R"([\p{P}!-/:-@\[-`{-~])";
inline constexpr std::string_view kSpacedWord = R"(\s?\p{L}+)";
inline constexpr std::string_view kSpacedPunctuation = R"(\s?\p{P}+)";
// DeepSeek LLM: letters of scripts with case, listed; ASCII and full-width punctuation.
inline constexpr std::string_view kDeepseekWord =
    R"(\s?[)"
    R"(A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293})"
    R"(\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386})"
    R"(\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f})"
    R"(\x{531}-\x{556}\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba})"
    R"(\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a})"
    R"(\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d})"
    R"(\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4})"
    R"(\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3})"
    R"(\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107})"
    R"(\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d})"
    R"(\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184})"
    R"(\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d})"
    R"(\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787}\x{a78b}-\x{a78e})"
    R"(\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a})"
    R"(\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb})"
    R"(\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943})"
    R"(]+)";
inline constexpr std::string_view kDeepseekPunctuation =
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3001}\x{3002}]+)";

// As in tokenizer.json files. (?i:'s) also matches U+017F.
#define OUTRIDER_ANY_CASE R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define OUTRIDER_LETTERS_ON R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
#define OUTRIDER_OTHERS_ON R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
// Llama 3, OLMo 2 and others with cl100k's; Qwen2 and Qwen3; Qwen3.5.
inline constexpr std::string_view kJsonLlama3 =
    OUTRIDER_ANY_CASE OUTRIDER_LETTERS_ON "{1,3}" OUTRIDER_OTHERS_ON;
inline constexpr std::string_view kJsonQwen2 =
    OUTRIDER_ANY_CASE OUTRIDER_LETTERS_ON OUTRIDER_OTHERS_ON;
inline constexpr std::string_view kJsonQwen35 =
    OUTRIDER_ANY_CASE R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
                      R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
// cl100k in tiktoken's spelling: the same words. And Bailing's, with single digits.
inline constexpr std::string_view kJsonCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)";
inline constexpr std::string_view kJsonBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)";
// gpt-oss and Llama 4 (o200k); Mistral's Tekken.
#define OUTRIDER_SMALL_BEHIND \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
#define OUTRIDER_CAPITALS_BEFORE \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
#define OUTRIDER_SLASHES_ON R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
inline constexpr std::string_view kJsonO200k = OUTRIDER_SMALL_BEHIND OUTRIDER_ANY_CASE
    "?|" OUTRIDER_CAPITALS_BEFORE OUTRIDER_ANY_CASE R"(?|\p{N}{1,3})" OUTRIDER_SLASHES_ON;
inline constexpr std::string_view kJsonTekken =
    OUTRIDER_SMALL_BEHIND "|" OUTRIDER_CAPITALS_BEFORE R"(|\p{N})" OUTRIDER_SLASHES_ON;
#undef OUTRIDER_SLASHES_ON
#undef OUTRIDER_CAPITALS_BEFORE
#undef OUTRIDER_SMALL_BEHIND
#undef OUTRIDER_OTHERS_ON
#undef OUTRIDER_LETTERS_ON
#undef OUTRIDER_ANY_CASE
// Tiny Aya's numbers.
inline constexpr std::string_view kJsonThrees = R"(\d{1,3}(?=(?:\d{3})*\b))";
// DeepSeek LLM's blanks at the ends of lines; Pattern replaces it by kSpacesAtEnd.
inline constexpr std::string_view kJsonSpacesAtEnd = R"(\s+$)";

}  // namespace outrider::cut

#endif  // OUTRIDER_TOKENIZER_PATTERNS_CUTTING_PATTERNS_H_
