// SPDX-License-Identifier: Apache-2.0
// The meaning of names in tokenizer.ggml.pre. The expected splits and ids are those of llama.cpp
// 0.7.0 (build 11669, Debian): llama_tokenize on GGUF files with the vocabularies made below. (With
// vocabularies in which any two of 170 characters merge, the ids of 2,800 random texts were equal
// for every name; Qwen's on texts that are composed already.)
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "io/test_files.h"
#include "tokenizer/formats/gguf_vocabulary.h"
#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using test::Ids;

std::string spelled(std::string_view text) {
  std::string out;
  append_byte_level(text, out);
  return out;
}

// A vocabulary in which each word of a text is one token: all bytes, all runs of the text's
// characters, and a merge for every way to build one of them.
class WholeWords {
 public:
  explicit WholeWords(std::string_view text) {
    for (int byte = 0; byte < 256; ++byte) add(spelled(std::string(1, static_cast<char>(byte))));
    std::vector<std::size_t> starts;
    for (std::size_t at = 0; at < text.size();) {
      starts.push_back(at);
      const auto n_bytes = static_cast<std::size_t>(code_point_at(text, at).n_bytes);
      for (std::size_t n = 2; n <= n_bytes; ++n) {
        merge(text.substr(at, n - 1), text.substr(at + n - 1, 1));
      }
      at += n_bytes;
    }
    starts.push_back(text.size());
    for (std::size_t length = 2; length < starts.size(); ++length) {
      for (std::size_t i = 0; i + length < starts.size(); ++i) {
        for (std::size_t k = 1; k < length; ++k) {
          merge(text.substr(starts[i], starts[i + k] - starts[i]),
                text.substr(starts[i + k], starts[i + length] - starts[i + k]));
        }
      }
    }
  }
  PipelineTokenizer tokenizer(std::string_view pre) const {
    const auto bytes = test::Gguf()
                           .text("tokenizer.ggml.model", "gpt2")
                           .text("tokenizer.ggml.pre", pre)
                           .texts("tokenizer.ggml.tokens", tokens_)
                           .texts("tokenizer.ggml.merges", merges_)
                           .bytes();
    return PipelineTokenizer(read_gguf_vocabulary(*parse_gguf(bytes, "test.gguf"), "test.gguf"));
  }

 private:
  void add(const std::string& token) {
    if (known_.insert(token).second) tokens_.push_back(token);
  }
  void merge(std::string_view left, std::string_view right) {
    add(spelled(left) + spelled(right));
    const std::string both = spelled(left) + " " + spelled(right);
    if (known_merges_.insert(both).second) merges_.push_back(both);
  }

  std::vector<std::string> tokens_, merges_;
  std::set<std::string> known_, known_merges_;
};

struct Cut {
  const char* name;
  const char* words;  // separated by |
};

constexpr Cut kCuts[] = {
    // clang-format off
    {"default", "I|'|VE| we|'|ll|12| |123|456|7|x| | AbcDEFgh| éÉa"},
    {"default", "न|\u0940|त|\u093f|中文々ひカ한ㄅ|\u2028|、|a|…|b| |〇Ⅷ"},
    {"default", "a|  \n\n | b|\t|,| |(|x|/|y|)/|\n |-=?| | |12| |!|ok| \r\n"},
    {"gpt-2", "I|'|VE| we|'ll|12| 1234567|x| | AbcDEFgh| éÉa"},
    {"gpt-2", "न|\u0940|त|\u093f|中文々ひカ한ㄅ|\u2028|、|a|…|b| 〇Ⅷ"},
    {"gpt-2", "a|  \n\n | b|\t|,| (|x|/|y|)/|\n| -=?| | 12| !|ok| \r\n"},
    {"starcoder", "I|'|VE| we|'ll|1|2| |1|2|3|4|5|6|7|x| | AbcDEFgh| éÉa"},
    {"starcoder", "न|\u0940|त|\u093f|中文々ひカ한ㄅ|\u2028|、|a|…|b| |〇|Ⅷ"},
    {"starcoder", "a|  \n\n | b|\t|,| (|x|/|y|)/|\n| -=?|  |1|2| !|ok| \r\n"},
    {"falcon", "I|'|VE| we|'|ll|12| |123|456|7|x| | AbcDEFgh| éÉa"},
    {"falcon", "न|\u0940|त|\u093f|中文々ひカ한ㄅ|\u2028|、|a|…|b| 〇Ⅷ"},
    {"falcon", "a|  \n\n | b|\t|,| |(|x|/|y|)/|\n |-=?| | 12| |!|ok| \r\n"},
    {"chameleon", "I|'|VE| we|'|ll|1|2| |1|2|3|4|5|6|7|x|  |AbcDEFgh| éÉa"},
    {"chameleon", "न|\u0940|त|\u093f|中文々ひカ한ㄅ|\u2028|、|a|…|b| |〇|Ⅷ"},
    {"chameleon", "a|  |\n|\n|  |b|\t|,| |(|x|/|y|)|/|\n| |-|=|?|  |1|2| |!|ok| \r|\n"},
    {"chameleon", "<|sentinel|:|1|2|>|IMGIMGABZ|."},
    {"deepseek-llm", "I|'|VE| we|'|ll|12| |1234567|x| | AbcDEFgh| éÉ|a"},
    {"deepseek-llm", "न\u0940त\u093f中文々ひカ한ㄅ|\u2028|、|a|…|b| |〇Ⅷ"},
    {"deepseek-llm", "a|  |\n|\n| | b|\t,| (|x|/|y|)/|\n| -=?|  |12| !|ok| |\r|\n"},
    {"deepseek-coder", "I|'|VE| we|'|ll|1|2| |1|2|3|4|5|6|7|x| | AbcDEFgh| éÉa"},
    {"deepseek-coder", "न|\u0940|त|\u093f|中文々ひカ한ㄅ|\u2028|、|a|…|b| |〇|Ⅷ"},
    {"deepseek-coder", "a|  |\n|\n| | b|\t,| (|x|/|y|)/|\n| -|=|?|  |1|2| !|ok| |\r|\n"},
    {"deepseek-v3", "I|'VE| we|'ll|12| |123|456|7|x| | AbcDEFgh| éÉa"},
    {"deepseek-v3", "न\u0940त\u093f|中文|々|ひカ|한ㄅ|\u2028|、|a|…|b| |〇Ⅷ"},
    {"deepseek-v3", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?|  |12| !|ok| \r\n"},
    {"spark2_5", "I|'VE| we|'ll|1|2| |1|2|3|4|5|6|7|x| | AbcDEFgh| éÉa"},
    {"spark2_5", "न\u0940त\u093f|中文|々|ひカ|한ㄅ|\u2028|、|a|…|b| |〇|Ⅷ"},
    {"spark2_5", "a|  \n\n | b|\t|,| (|x|/y|)/|\n| -=?|  |1|2| !|ok| \r\n"},
    {"afmoe", "I|'VE| we|'ll|12| |1|234|567|x| | AbcDEFgh| éÉa"},
    {"afmoe", "न\u0940त\u093f|中文|々|ひカ한|ㄅ|\u2028|、|a|…|b| |〇Ⅷ"},
    {"afmoe", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |12| !|ok| \r\n"},
    {"llama-bpe", "I|'VE| we|'ll|12| |123|456|7|x| | AbcDEFgh| éÉa"},
    {"llama-bpe", "न|\u0940त|\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇Ⅷ"},
    {"llama-bpe", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |12| !|ok| \r\n"},
    {"glm4", "I|'VE| we|'ll|12| |123|456|7|x| | AbcDEFgh| éÉa"},
    {"glm4", "न|\u0940त|\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇Ⅷ"},
    {"glm4", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |12| !|ok| \r\n"},
    {"chatglm-bpe", "I|'VE| we|'ll|12| |123|456|7|x| | AbcDEFgh| éÉa"},
    {"chatglm-bpe", "न|\u0940त|\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇Ⅷ"},
    {"chatglm-bpe", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |12| !|ok| \r\n"},
    {"minicpm5", "I|'VE| we|'ll|12| |123|456|7|x| | AbcDEFgh| éÉa"},
    {"minicpm5", "न|\u0940त|\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇Ⅷ"},
    {"minicpm5", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?|  |12| !|ok| \r\n"},
    {"jais-2", "I|'VE| we|'ll|12| |123|456|7|x| | AbcDEFgh| éÉa"},
    {"jais-2", "न|\u0940त|\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇Ⅷ"},
    {"jais-2", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |12| !|ok| \r\n"},
    {"jais-2", "a|        |    |  | b"},
    {"k2-horizon", "I|'VE| we|'ll|12| |123|456|7|x| | AbcDEFgh| éÉa"},
    {"k2-horizon", "न\u0940त\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇Ⅷ"},
    {"k2-horizon", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |12| !|ok| \r\n"},
    {"k2-horizon", "क\u094d\u200dष\u200c|\r|x"},
    {"deepseek-r1-qwen", "I|'VE| we|'ll|1|2| |1|2|3|4|5|6|7|x| | AbcDEFgh| éÉa"},
    {"deepseek-r1-qwen", "न|\u0940त|\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇|Ⅷ"},
    {"deepseek-r1-qwen", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |1|2| !|ok| \r\n"},
    {"qwen35", "I|'VE| we|'ll|1|2| |1|2|3|4|5|6|7|x| | AbcDEFgh| éÉa"},
    {"qwen35", "न\u0940त\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇|Ⅷ"},
    {"qwen35", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |1|2| !|ok| \r\n"},
    {"ufakzeka", "I|'VE| we|'ll|1|2| |1|2|3|4|5|6|7|x| | AbcDEFgh| éÉa"},
    {"ufakzeka", "न|\u0940त|\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇|Ⅷ"},
    {"ufakzeka", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |1|2| !|ok| \r\n"},
    {"seed-coder", "I|'VE| we|'ll|1|2| |1|2|3|4|5|6|7|x| | AbcDEFgh| éÉa"},
    {"seed-coder", "न|\u0940त|\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇|Ⅷ"},
    {"seed-coder", "a|  \n\n| | b|\t|,| (|x|/y|)/|\n| -=?| | |1|2| !|ok| \r\n"},
    {"laguna", "I|'VE| we|'ll|1|2| |1|2|3|4|5|6|7|x| | AbcDEFgh| éÉa"},
    {"laguna", "न|\u0940त|\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇|Ⅷ"},
    {"laguna", "a|  |\n\n| | b|\t|,| (|x|/y|)/|\n| -=?| | |1|2| !|ok| \r|\n"},
    {"exaone-moe", "I|'VE| we|'ll|1|2| |1|2|3|4|5|6|7|x| | AbcDEFgh éÉa"},
    {"exaone-moe", "न\u0940त\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇|Ⅷ"},
    {"exaone-moe", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |1|2| !|ok| \r\n"},
    {"exaone-moe", "a b| | c"},
    {"tekken", "I|'VE| we|'ll|1|2| |1|2|3|4|5|6|7|x| | Abc|DEFgh| éÉa"},
    {"tekken", "न|\u0940त|\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇|Ⅷ"},
    {"tekken", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |1|2| !|ok| \r\n"},
    {"tekken", "\u093cR|\u0301s"},
    {"gpt-4o", "I'VE| we'll|12| |123|456|7|x| | Abc|DEFgh| éÉa"},
    {"gpt-4o", "न|\u0940त|\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇Ⅷ"},
    {"gpt-4o", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |12| !|ok| \r\n"},
    {"granite-embed-multi-97m", "I'VE| we'll|12| |123|456|7|x| | Abc|DEFgh| éÉa"},
    {"granite-embed-multi-97m", "न\u0940त\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇Ⅷ"},
    {"granite-embed-multi-97m", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |12| !|ok| \r\n"},
    {"granite-embed-multi-97m", "\u093cR\u0301s"},
    {"youtu", "I'VE| we'll|1|2| |1|2|3|4|5|6|7|x| | AbcDEFgh| éÉa"},
    {"youtu", "न\u0940त\u093f|中文|々|ひカ|한|ㄅ|\u2028|、|a|…|b| |〇|Ⅷ"},
    {"youtu", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |1|2| !|ok| \r\n"},
    {"tiny_aya", "I'VE| we'll|12| |1|234|567|x| | AbcDEFgh| éÉa"},
    {"tiny_aya", "न\u0940त\u093f中文々ひカ한ㄅ|\u2028|、a|…b| |〇Ⅷ"},
    {"tiny_aya", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |12| !|ok| \r\n"},
    {"kimi-k2", "I'VE| we'll|12| |123|456|7|x| | AbcDEFgh| éÉa"},
    {"kimi-k2", "न|\u0940त|\u093f|中文|々ひカ한ㄅ|\u2028|、a|…b| |〇Ⅷ"},
    {"kimi-k2", "a|  \n\n| | b|\t|,| (|x|/y|)/\n| -=?| | |12| !|ok| \r\n"},
    {"superbpe", "I'VE we'll|12| |1|234|567|x  AbcDEFgh éÉa"},
    {"superbpe", "न\u0940त\u093f中文々ひカ한ㄅ\u2028、a…b |〇Ⅷ"},
    {"superbpe", "a  \n\n  b\t, (x/y)/\n -=?  |12| !ok \r\n"},
    {"superbpe", "१२३४५| |12|345"},
    {"poro-chat", "I'VE| we'll12| 1234567x| | AbcDEFgh| éÉa"},
    {"poro-chat", "न\u0940त\u093f中文々ひカ한ㄅ|\u2028、|a|…|b| 〇Ⅷ"},
    {"poro-chat", "a|  \n\n | b|\t, (|x/y|)|/|\n| -=|? | 12| !|ok| \r\n"},
    {"viking", "I'VE| we'll|1|2| |1|2|3|4|5|6|7|x| | AbcDEFgh| éÉa"},
    {"viking", "न\u0940त\u093f中文々ひカ한ㄅ|\u2028、|a|…|b| |〇|Ⅷ"},
    {"viking", "a|  \n\n | b|\t, (|x/y|)|/|\n| -=|? | |1|2| !|ok| \r\n"},
    // clang-format on
};

TEST(GgufPreTokenizers, CutAsLlamaCppDoes) {
  for (const Cut& cut : kCuts) {
    SCOPED_TRACE(::testing::Message() << cut.name << ": " << cut.words);
    std::string text = cut.words;
    text.erase(std::remove(text.begin(), text.end(), '|'), text.end());
    const PipelineTokenizer tokenizer = WholeWords(text).tokenizer(cut.name);
    std::string words;
    for (const TokenId id : tokenizer.encode(text, false)) {
      words += (words.empty() ? "" : "|") + tokenizer.bytes(id);
    }
    EXPECT_EQ(words, cut.words);
  }
}

// Ids of "abc" and "<s>": the former is a piece to which no merge leads, the latter begins a text.
Ids ids_of(std::string_view pre, std::string_view text) {
  const auto bytes = test::Gguf()
                         .text("tokenizer.ggml.model", "gpt2")
                         .text("tokenizer.ggml.pre", pre)
                         .texts("tokenizer.ggml.tokens", {"a", "b", "c", "ab", "abc", "<s>"})
                         .array("tokenizer.ggml.token_type", test::kI32,
                                std::vector<std::int32_t>{1, 1, 1, 1, 1, 3})
                         .texts("tokenizer.ggml.merges", {"a b"})
                         .value("tokenizer.ggml.bos_token_id", test::kU32, std::uint32_t{5})
                         .bytes();
  return PipelineTokenizer(read_gguf_vocabulary(*parse_gguf(bytes, "test.gguf"), "test.gguf"))
      .encode(text, true);
}

TEST(GgufPreTokenizers, SayWhatBeginsATextAndWhetherPiecesNeedMerges) {
  std::istringstream names(gguf_pre_tokenizer_names());
  const std::set<std::string> begin = {"llama-bpe", "llama3",       "llama-v3", "falcon3",
                                       "falcon-h1", "pixtral",      "midm-2.0", "lfm2",
                                       "tekken",    "jina-v5-nano", "chameleon"};
  const std::set<std::string> whole = {
      "llama-bpe", "llama3",   "llama-v3", "falcon3",      "falcon-h1",
      "pixtral",   "midm-2.0", "lfm2",     "tekken",       "glm4",
      "glm5",      "minicpm5", "youtu",    "jina-v5-nano", "granite-embed-multi-97m"};
  const std::set<std::string> plain = {"gemma4", "granite-embed-multi-311m", "sarvam-moe"};
  std::set<std::string> seen;
  for (std::string name; names >> name;) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(seen.insert(name).second);
    ASSERT_NE(find_gguf_pre_tokenizer(name), nullptr);
    if (plain.contains(name)) continue;
    Ids expected;
    if (begin.contains(name)) expected.push_back(5);
    for (const TokenId id : whole.contains(name) ? Ids{4} : Ids{3, 2}) expected.push_back(id);
    EXPECT_EQ(ids_of(name, "abc"), expected);
  }
  EXPECT_EQ(seen.size(), 91u);
  // A message truncates its parts at 300 bytes: this much of the list is in it.
  EXPECT_LT(gguf_pre_tokenizer_kinds().find(" granite-"), 280u);
  for (const char* name : {"", "llama", "default ", "gpt-2 phi-2", "mmbert"}) {
    EXPECT_EQ(find_gguf_pre_tokenizer(name), nullptr) << name;
  }
}

PipelineTokenizer plain_spelling(std::string_view model, std::string_view pre) {
  std::vector<std::string> tokens = {"<s>", "</s>"};
  std::vector<std::int32_t> types = {3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(byte_token_piece(byte));
    types.push_back(6);
  }
  for (const char* piece : {"a", "b", "▁", "\n", "▁b", "ab", "\n\n", "中", "▁▁"}) {
    tokens.emplace_back(piece);
    types.push_back(1);
  }
  test::Gguf file;
  file.text("tokenizer.ggml.model", model);
  if (!pre.empty()) file.text("tokenizer.ggml.pre", pre);
  const auto bytes = file.texts("tokenizer.ggml.tokens", tokens)
                         .array("tokenizer.ggml.token_type", test::kI32, types)
                         .texts("tokenizer.ggml.merges", {"▁ b", "a b", "▁ ▁"})
                         .value("tokenizer.ggml.bos_token_id", test::kU32, std::uint32_t{0})
                         .value("tokenizer.ggml.add_bos_token", test::kBool, std::uint8_t{0})
                         .bytes();
  return PipelineTokenizer(read_gguf_vocabulary(*parse_gguf(bytes, "test.gguf"), "test.gguf"));
}

TEST(GgufPreTokenizers, PlainSpellings) {
  const std::string one = "ab  b\n\nz中";
  const std::string two = "a<s>é\n\n\nb b ";
  const std::pair<const char*, const char*> gemma[] = {{"gemma4", ""}, {"gpt2", "gemma4"}};
  for (const auto& [model, pre] : gemma) {
    const PipelineTokenizer tokenizer = plain_spelling(model, pre);
    EXPECT_EQ(tokenizer.encode(one, true), (Ids{0, 263, 260, 262, 264, 124, 265}));
    EXPECT_EQ(tokenizer.encode(two, true),
              (Ids{0, 258, 0, 197, 171, 261, 261, 261, 259, 262, 260}));
    EXPECT_EQ(tokenizer.encode("", true), Ids{0});
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(one, true)), one);
    EXPECT_TRUE(tokenizer.warnings().empty());
  }
  const PipelineTokenizer tokenizer = plain_spelling("gpt2", "sarvam-moe");
  EXPECT_EQ(tokenizer.encode(one, true), (Ids{263, 260, 262, 261, 261, 124, 265}));
  EXPECT_EQ(tokenizer.encode(two, true), (Ids{258, 0, 197, 171, 261, 261, 261, 259, 262, 260}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(two, true), true), two);
}

}  // namespace
}  // namespace outrider
