// SPDX-License-Identifier: Apache-2.0
#include "tests/support/models/tiny_tokenizer.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

namespace outrider::test {
namespace {

// The text from which the merges are learnt.
constexpr const char* kText =
    "A rider went out before the others to see what the road would bring. Where the road was "
    "plain she rode far ahead and the others followed at once. Where it forked she made a guess, "
    "and the others looked at every sign she had left, and kept the way as far as she had been "
    "right. Then they went on from there, and nothing was lost but her time. Once upon a time "
    "there was a little girl who lived in a small house near the big forest. She liked to play "
    "with her friends and with her dog, and one day they found a red ball under the old tree. "
    "They were very happy and wanted to share it with everyone. The sun was shining, the birds "
    "were singing, and the water in the river was cold and clear. Her mother said that it was "
    "getting late, and so they all went home together, had some warm soup, and slept well.";

// GPT-2's spelling of bytes as characters: printable ones are themselves, the others are the code
// points from 256 on.
std::vector<std::string> byte_spellings() {
  const auto utf8 = [](int code) {
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    return std::string{static_cast<char>(0xc0 | (code >> 6)),
                       static_cast<char>(0x80 | (code & 0x3f))};
  };
  std::vector<std::string> spellings(256);
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
    spellings[static_cast<std::size_t>(byte)] = utf8(printable ? byte : next++);
  }
  return spellings;
}

// Words with the blank before them, and single punctuation marks, each as a list of tokens.
std::vector<std::vector<std::string>> split_text(const std::vector<std::string>& spellings) {
  std::vector<std::vector<std::string>> words(1);
  for (const char* at = kText; *at != '\0'; ++at) {
    const bool starts_word = *at == ' ' || *at == ',' || *at == '.';
    if (starts_word) words.emplace_back();
    words.back().push_back(spellings[static_cast<unsigned char>(*at)]);
  }
  return words;
}

}  // namespace

TinyVocabulary make_tiny_vocabulary(int vocabulary_size) {
  const std::vector<std::string> spellings = byte_spellings();
  TinyVocabulary vocabulary;
  vocabulary.tokens = {"<|begin|>", "<|end|>"};
  vocabulary.tokens.insert(vocabulary.tokens.end(), spellings.begin(), spellings.end());

  std::vector<std::vector<std::string>> words = split_text(spellings);
  const auto wanted = static_cast<std::size_t>(vocabulary_size);
  while (vocabulary.tokens.size() < wanted) {
    std::map<std::pair<std::string, std::string>, int> counts;
    for (const auto& word : words) {
      for (std::size_t i = 1; i < word.size(); ++i) ++counts[{word[i - 1], word[i]}];
    }
    auto best = counts.begin();  // ties go to the first in byte order
    for (auto entry = counts.begin(); entry != counts.end(); ++entry) {
      if (entry->second > best->second) best = entry;
    }
    if (best == counts.end()) break;
    const auto merge = best->first;
    const std::string merged = merge.first + merge.second;
    vocabulary.merges.push_back(merge);
    vocabulary.tokens.push_back(merged);
    for (auto& word : words) {
      std::vector<std::string> shorter;
      for (std::size_t i = 0; i < word.size(); ++i) {
        if (i + 1 < word.size() && word[i] == merge.first && word[i + 1] == merge.second) {
          shorter.push_back(merged);
          ++i;
        } else {
          shorter.push_back(word[i]);
        }
      }
      word = std::move(shorter);
    }
  }
  while (vocabulary.tokens.size() < wanted) {
    vocabulary.tokens.push_back(fmt::format("<|unused {}|>", vocabulary.n_unused++));
  }
  return vocabulary;
}

std::string tokenizer_json(const TinyVocabulary& vocabulary) {
  using Json = nlohmann::ordered_json;
  Json ids = Json::object();
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) ids[vocabulary.tokens[id]] = id;
  Json merges = Json::array();
  for (const auto& [left, right] : vocabulary.merges) merges.push_back(left + " " + right);
  Json added = Json::array();
  for (int id = 0; id < 2; ++id) {
    added.push_back({{"id", id},
                     {"content", vocabulary.tokens[static_cast<std::size_t>(id)]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const std::string& begin = vocabulary.tokens[0];
  const Json begin_token = {{"SpecialToken", {{"id", begin}, {"type_id", 0}}}};
  const auto text = [](const char* id, int type) {
    return Json{{"Sequence", {{"id", id}, {"type_id", type}}}};
  };
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  const Json tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", Json::array({begin_token, text("A", 0)})},
        {"pair", Json::array({begin_token, text("A", 0), text("B", 1)})},
        {"special_tokens",
         {{begin, {{"id", begin}, {"ids", Json::array({0})}, {"tokens", Json::array({begin})}}}}}}},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"vocab", ids},
        {"merges", merges}}}};
  return tokenizer.dump(1) + "\n";
}

}  // namespace outrider::test
