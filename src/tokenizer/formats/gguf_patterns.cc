// SPDX-License-Identifier: Apache-2.0
// The patterns that split text before merging, by their names in tokenizer.ggml.pre: those that
// llama.cpp 0.7.0 (build 11669) knows for vocabularies of kind gpt2, and each name's other
// settings. (Without two, "mmbert" and "whitespace", which belong to encoders.) A GGUF file means
// the same here as there, even where llama.cpp is known to differ from the model's own tokenizer:
//   tekken, gpt-4o, granite-embed-multi-97m   letters outside ASCII have no case
//   youtu, tiny_aya                           letters have no case at all
//   kimi-k2                                   Han is a list of blocks; marks are no letters
//   afmoe, tiny_aya                           digits take the text before them along, so that a
//                                             run of blanks before them is cut elsewhere
//   afmoe                                     its scripts include all from U+8C48 to U+FAFF
//   superbpe                                  digits are 0 to 9
// One difference: a GGUF file does not say whether a tokenizer composes characters (NFC), and
// llama.cpp does not compose them. Qwen's own tokenizers do, and the models were trained on
// composed text.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/formats/gguf_vocabulary.h"
#include "tokenizer/patterns/cutting_patterns.h"

namespace outrider {
namespace {

const std::vector<GgufPreTokenizer>& all_pre_tokenizers() {
  static const std::vector<GgufPreTokenizer> all = {
      {.names = "default",
       .patterns = {cut::kPunctuation, cut::kGpt2, cut::kDigits, cut::kThreeDigits}},
      {.names =
           "gpt-2 phi-2 mpt olmo jais trillion granite-docling gigachat a.x-4.0 mellum exaone4 "
           "modern-bert jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code "
           "roberta-bpe",
       .patterns = {cut::kGpt2}},
      {.names = "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2",
       .patterns = {cut::kDigit, cut::kGpt2}},
      {.names = "falcon",
       .patterns = {cut::kPunctuationAndBacktick, cut::kGpt2, cut::kThreeDigits}},
      {.names = "chameleon",
       .patterns = {cut::kSentinel, cut::kImage, cut::kIndent, cut::kDigit, cut::kOnePunctuation,
                    cut::kGpt2},
       .beginning = BeginningToken::kByDefault},
      {.names = "deepseek-llm",
       .patterns = {cut::kLineEnd, cut::kDeepseekWord, cut::kDeepseekPunctuation, cut::kSpacesAtEnd,
                    cut::kEastAsian, cut::kDigits}},
      {.names = "deepseek-coder",
       .patterns = {cut::kLineEnd, cut::kSpacedWord, cut::kSpacedPunctuation, cut::kEastAsian,
                    cut::kDigit}},
      {.names = "deepseek-v3 hunyuan-dense hy_v4 joyai-llm",
       .patterns = {cut::kUpToThreeDigits, cut::kHanAndKana, cut::kDeepseek3}},
      {.names = "spark2_5",
       .patterns = {cut::kUpToThreeDigits, cut::kHanAndKana, cut::kSpark, cut::kDigit}},
      {.names = "afmoe",
       .patterns = {cut::kNumberAndTextBefore, cut::kAfmoeScripts, cut::kDeepseek3}},
      {.names = "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
       .patterns = {cut::kLlama3},
       .beginning = BeginningToken::kByDefault,
       .ignores_merges = true},
      {.names = "glm4 glm5", .patterns = {cut::kLlama3}, .ignores_merges = true},
      {.names = "dbrx smaug-bpe chatglm-bpe", .patterns = {cut::kLlama3}},
      {.names = "minicpm5",
       .patterns = {cut::kUpToThreeDigits, cut::kLlama3},
       .ignores_merges = true},
      {.names = "jais-2", .patterns = {cut::kJais2}},
      {.names = "k2-horizon", .patterns = {cut::kK2Horizon}},
      {.names = "qwen2", .patterns = {cut::kQwen2}, .composes = true},
      {.names =
           "grok-2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open bailingmoe "
           "bailingmoe2 llada-moe",
       .patterns = {cut::kQwen2}},
      {.names = "qwen35", .patterns = {cut::kQwen35}, .composes = true},
      {.names = "ufakzeka", .patterns = {cut::kUfakzeka}},
      {.names = "seed-coder", .patterns = {cut::kSeedCoder}},
      {.names = "laguna", .patterns = {cut::kLine, cut::kQwen2}},
      {.names = "gemma4 granite-embed-multi-311m",
       .patterns = {cut::kLine},
       .beginning = BeginningToken::kAlways,
       .plain_spelling = true,
       .whole_line_ends = true},
      {.names = "sarvam-moe", .patterns = {cut::kLine}, .plain_spelling = true},
      {.names = "exaone-moe", .patterns = {cut::kExaoneMoe}},
      {.names = "tekken",
       .patterns = {cut::kTekken},
       .beginning = BeginningToken::kByDefault,
       .ignores_merges = true},
      {.names = "gpt-4o llama4 kanana2 talkie minimax-m2", .patterns = {cut::kGpt4o}},
      {.names = "youtu", .patterns = {cut::kYoutuScripts, cut::kYoutuWord}, .ignores_merges = true},
      {.names = "tiny_aya cohere2moe", .patterns = {cut::kNumberAndTextBefore, cut::kTinyAya}},
      {.names = "kimi-k2", .patterns = {cut::kKimiK2}},
      {.names = "superbpe", .patterns = {cut::kDigits, cut::kBetweenThrees}},
      {.names = "bloom poro-chat gpt3-finnish", .patterns = {cut::kNoPunctuation}},
      {.names = "viking", .patterns = {cut::kNoPunctuation, cut::kDigit}},
      {.names = "granite-embed-multi-97m",
       .patterns = {cut::kGraniteMultilingual},
       .ignores_merges = true},
  };
  return all;
}

}  // namespace

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) {
  for (const GgufPreTokenizer& one : all_pre_tokenizers()) {
    for (std::string_view rest = one.names; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      if (rest.substr(0, end) == name) return &one;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return nullptr;
}

std::string gguf_pre_tokenizer_kinds() {
  std::string names;
  for (const GgufPreTokenizer& one : all_pre_tokenizers()) {
    if (!names.empty()) names += " ";
    names += one.names.substr(0, one.names.find(' '));
  }
  return names;
}

std::string gguf_pre_tokenizer_names() {
  std::string names;
  for (const GgufPreTokenizer& one : all_pre_tokenizers()) {
    if (!names.empty()) names += " ";
    names += one.names;
  }
  return names;
}

}  // namespace outrider
