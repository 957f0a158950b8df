// The patterns that cut text before merging, by the names tokenizer.ggml.pre has for them. They are
// those of the models' own tokenizers, in the form llama.cpp gives them, so that a GGUF file means
// the same here as there. One difference: a GGUF file does not say that a tokenizer composes
// characters (NFC), and llama.cpp does not do it. Qwen's own tokenizers do, and the models were
// trained on what came of it.
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/byte_level.h"
#include "tokenizer/gguf_vocabulary.h"

namespace outrider {
namespace {

// Runs of spaces: all but the last, which belongs to the word behind.
#define OUTRIDER_SPACES R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define OUTRIDER_CONTRACTIONS R"('(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|)"

// Contractions in any case, words with one leading non-letter, up to three digits, other characters
// with the line ends behind them, line ends, spaces.
constexpr std::string_view kLlama3 = OUTRIDER_CONTRACTIONS
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" OUTRIDER_SPACES;
// The same with single digits.
constexpr std::string_view kQwen2 = OUTRIDER_CONTRACTIONS
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" OUTRIDER_SPACES;
// The same with combining marks as letters.
constexpr std::string_view kQwen35 = OUTRIDER_CONTRACTIONS
    R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" OUTRIDER_SPACES;

#undef OUTRIDER_SPACES
#undef OUTRIDER_CONTRACTIONS

constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kDigits = R"(\p{N}+)";
constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";
constexpr std::string_view kPunctuation = R"([\p{P}$+<=>^~|]+)";
constexpr std::string_view kPunctuationAndBacktick = R"([\p{P}$+<=>^~|`]+)";
constexpr std::string_view kLineEnd = R"([\r\n])";
constexpr std::string_view kSpacesAtEnd = R"(\s+$)";
constexpr std::string_view kEastAsian = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
constexpr std::string_view kSpacedWord = R"(\s?\p{L}+)";
constexpr std::string_view kSpacedPunctuation = R"(\s?\p{P}+)";
// DeepSeek LLM: letters of scripts with case, listed; ASCII and full-width punctuation.
constexpr std::string_view kDeepseekWord =
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
constexpr std::string_view kDeepseekPunctuation =
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)";

constexpr bool kComposes = true;

const std::vector<GgufPreTokenizer>& all_pre_tokenizers() {
  static const std::vector<GgufPreTokenizer> all = {
      {"default", {kPunctuation, kGpt2Pattern, kDigits, kThreeDigits}},
      {"gpt-2", {kGpt2Pattern}},
      {"mpt", {kGpt2Pattern}},
      {"starcoder", {kDigit, kGpt2Pattern}},
      {"refact", {kDigit, kGpt2Pattern}},
      {"command-r", {kDigit, kGpt2Pattern}},
      {"smollm", {kDigit, kGpt2Pattern}},
      {"falcon", {kPunctuationAndBacktick, kGpt2Pattern, kThreeDigits}},
      {"deepseek-llm",
       {kLineEnd, kDeepseekWord, kDeepseekPunctuation, kSpacesAtEnd, kEastAsian, kDigits}},
      {"deepseek-coder", {kLineEnd, kSpacedWord, kSpacedPunctuation, kEastAsian, kDigit}},
      {"llama-bpe", {kLlama3}},
      {"qwen2", {kQwen2}, kComposes},
      {"deepseek-r1-qwen", {kQwen2}},
      {"qwen35", {kQwen35}, kComposes},
  };
  return all;
}

}  // namespace

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) {
  for (const GgufPreTokenizer& one : all_pre_tokenizers()) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::string gguf_pre_tokenizer_names() {
  std::string names;
  for (const GgufPreTokenizer& one : all_pre_tokenizers()) {
    if (!names.empty()) names += ", ";
    names += one.name;
  }
  return names;
}

}  // namespace outrider
