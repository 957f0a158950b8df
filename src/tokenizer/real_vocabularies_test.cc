// SPDX-License-Identifier: Apache-2.0
// Real vocabularies and the ids of their own tokenizers. These tests need the folder of shared data
// and are skipped without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>

#include "tokenizer/formats/gguf_vocabulary.h"
#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using test::Ids;
using test::Json;
using test::read_file;
using test::shared_data;
namespace fs = std::filesystem;

#define OUTRIDER_NEED(path) \
  if (!fs::exists(path)) GTEST_SKIP() << "no " << path

struct Case {
  std::string text;
  Ids ids;
};

// NAME.inp: texts, with a separator line between them. NAME.out: ids, one line per text; special
// tokens were not added.
std::vector<Case> ggml_vocab_cases(const std::string& name) {
  const fs::path base = shared_data() / "tokenizers/ggml_vocab" / ("ggml-vocab-" + name + ".gguf");
  const std::string inputs = read_file(base.string() + ".inp");
  std::istringstream outputs(read_file(base.string() + ".out"));
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<Case> cases;
  for (std::size_t at = 0; at < inputs.size();) {
    const std::size_t end = inputs.find(separator, at);
    Case one;
    one.text = inputs.substr(at, end - at);
    std::string line;
    std::getline(outputs, line);
    std::istringstream numbers(line);
    for (TokenId id; numbers >> id;) one.ids.push_back(id);
    cases.push_back(std::move(one));
    at = end == std::string::npos ? inputs.size() : end + separator.size();
  }
  EXPECT_EQ(cases.size(), 46u);
  return cases;
}

void check_cases(const Tokenizer& tokenizer, const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    SCOPED_TRACE(one.text);
    EXPECT_EQ(tokenizer.encode(one.text, false), one.ids);
    EXPECT_EQ(tokenizer.decode(one.ids), one.text);
    EXPECT_EQ(test::stream(tokenizer, one.ids), one.text);
    // Token by token the same, except for a blank that some prepend to a text.
    std::string bytes;
    for (const TokenId id : one.ids) bytes += tokenizer.bytes(id);
    if (std::any_of(one.ids.begin(), one.ids.end(),
                    [&](TokenId id) { return tokenizer.is_special(id); })) {
      continue;
    }
    EXPECT_TRUE(bytes == one.text || bytes == " " + one.text) << bytes;
  }
}

class GgmlVocabulary : public ::testing::TestWithParam<const char*> {};

TEST_P(GgmlVocabulary, EqualsTheGoldens) {
  const std::string name = GetParam();
  const fs::path file = shared_data() / "tokenizers/ggml_vocab" / ("ggml-vocab-" + name + ".gguf");
  OUTRIDER_NEED(file);
  check_cases(*Tokenizer::load(file), ggml_vocab_cases(name));
}

INSTANTIATE_TEST_SUITE_P(Names, GgmlVocabulary,
                         ::testing::Values("gpt-2", "deepseek-llm", "llama-spm", "phi-3"));

// A tokenizer.json from tiktoken ranks (a line "BASE64 RANK" each). The merge that makes a token is
// the pair that byte-pair encoding, by the ranks below the token's own, leaves of it.
Json document_from_ranks(const fs::path& file) {
  std::istringstream lines(read_file(file));
  std::vector<std::string> tokens;
  std::unordered_map<std::string, std::size_t> ranks;
  std::string encoded;
  for (std::size_t rank; lines >> encoded >> rank;) {
    EXPECT_EQ(rank, tokens.size());
    tokens.push_back(test::from_base64(encoded));
    ranks.emplace(tokens.back(), rank);
  }
  Json vocab = Json::object();
  Json merges = Json::array();
  const auto spell = [](std::string_view bytes) {
    std::string text;
    append_byte_level(bytes, text);
    return text;
  };
  for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
    const std::string& token = tokens[rank];
    vocab[spell(token)] = rank;
    if (token.size() == 1) continue;
    std::vector<std::string> parts;
    for (const char byte : token) parts.emplace_back(1, byte);
    while (parts.size() > 2) {
      std::size_t best_rank = rank;
      std::size_t best = 0;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = ranks.find(parts[i] + parts[i + 1]);
        if (found != ranks.end() && found->second < best_rank) {
          best_rank = found->second;
          best = i;
        }
      }
      if (best_rank == rank) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    // A token to which no chain of merges leads needs ignore_merges.
    if (parts.size() == 2) merges.push_back(Json::array({spell(parts[0]), spell(parts[1])}));
  }
  return test::byte_level_document(vocab, merges);
}

Json split_and_byte_level(const std::string& pattern) {
  return {{"type", "Sequence"},
          {"pretokenizers", Json::array({{{"type", "Split"},
                                          {"pattern", {{"Regex", pattern}}},
                                          {"behavior", "Isolated"},
                                          {"invert", false}},
                                         test::byte_level_component(false)})}};
}

// The patterns in these models' own files.
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

TEST(RankVocabulary, Llama3EqualsTheGoldens) {
  const fs::path file = shared_data() / "tokenizers/llama3/tokenizer.model";
  OUTRIDER_NEED(file);
  Json document = document_from_ranks(file);
  document["pre_tokenizer"] = split_and_byte_level(kLlama3);
  document["model"]["ignore_merges"] = true;
  check_cases(*test::make_tokenizer(document), ggml_vocab_cases("llama-bpe"));
}

TEST(RankVocabulary, QwenEqualsTheGoldens) {
  const fs::path file = shared_data() / "tokenizers/qwen/qwen.tiktoken";
  OUTRIDER_NEED(file);
  Json document = document_from_ranks(file);
  document["pre_tokenizer"] = split_and_byte_level(kQwen2);
  document["normalizer"] = {{"type", "NFC"}};
  const auto tokenizer = test::make_tokenizer(document);
  for (const Case& one : ggml_vocab_cases("qwen2")) {
    EXPECT_EQ(tokenizer->encode(one.text, false), one.ids) << one.text;
  }
}

// vocab.json and merges.txt, the files used before tokenizer.json.
Json gpt2_document() {
  const fs::path folder = shared_data() / "tokenizers/gpt2";
  std::istringstream lines(read_file(folder / "merges.txt"));
  Json merges = Json::array();
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(line);
  }
  return test::byte_level_document(Json::parse(read_file(folder / "vocab.json")), merges);
}

TEST(RealVocabulary, Gpt2FilesEqualTheGoldens) {
  OUTRIDER_NEED(shared_data() / "tokenizers/gpt2");
  const auto tokenizer = test::make_tokenizer(gpt2_document());
  check_cases(*tokenizer, ggml_vocab_cases("gpt-2"));
  const Json golden =
      Json::parse(read_file(shared_data() / "tokenizers/goldens_text/gpt2_encoded_tokens.json"));
  const Ids ids = golden["token_ids"].get<Ids>();
  EXPECT_EQ(tokenizer->encode(golden["text"].get<std::string>(), true), ids);
  EXPECT_EQ(tokenizer->decode(ids), golden["decoded_text"].get<std::string>());
}

TEST(RealVocabulary, Llama2EqualsTheGolden) {
  const fs::path file = shared_data() / "tokenizers/ggml_vocab/ggml-vocab-llama-spm.gguf";
  OUTRIDER_NEED(file);
  const auto tokenizer = Tokenizer::load(file);
  const Json golden =
      Json::parse(read_file(shared_data() / "tokenizers/goldens_text/llama_encoded.json"));
  const auto text = golden["text"].get<std::string>();
  const Ids ids = golden["token_ids"].get<Ids>();
  EXPECT_EQ(tokenizer->encode(text, true), ids);
  EXPECT_EQ(tokenizer->decode(ids), text);
  EXPECT_EQ("<s>" + std::string(" ") + text, golden["decoded_text"].get<std::string>());
}

TEST(RealVocabulary, Llama2ModelFileEqualsTheGoldens) {
  const fs::path file = shared_data() / "tokenizers/llama2/tokenizer.model";
  OUTRIDER_NEED(file);
  const auto tokenizer = Tokenizer::load(file);
  check_cases(*tokenizer, ggml_vocab_cases("llama-spm"));
  const Json golden =
      Json::parse(read_file(shared_data() / "tokenizers/goldens_text/llama_encoded.json"));
  const auto text = golden["text"].get<std::string>();
  const Ids ids = golden["token_ids"].get<Ids>();
  EXPECT_EQ(tokenizer->encode(text, true), ids);
  EXPECT_EQ(tokenizer->decode(ids), text);
}

// T5's vocabulary is not available; with the pieces that the golden names, its ids decode to its
// text.
TEST(RealVocabulary, T5GoldenDecodes) {
  const fs::path file = shared_data() / "tokenizers/goldens_text/t5_base_encoded.json";
  OUTRIDER_NEED(file);
  const Json golden = Json::parse(read_file(file));
  const Ids ids = golden["token_ids"].get<Ids>();
  const auto pieces = golden["bpe_tokens"].get<std::vector<std::string>>();
  ASSERT_EQ(pieces.size() + 1, ids.size());  // and the end token
  Json vocab = Json::array();
  Json added = Json::array({{{"id", 1}, {"content", "</s>"}, {"special", true}}});
  for (TokenId id = 0; id <= *std::max_element(ids.begin(), ids.end()); ++id) {
    vocab.push_back({id == 1 ? "</s>" : "<unused" + std::to_string(id) + ">", -100});
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    vocab[static_cast<std::size_t>(ids[i])] = {pieces[i], -10};
  }
  const Json metaspace = {
      {"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}};
  const auto tokenizer = test::make_tokenizer({{"added_tokens", added},
                                               {"pre_tokenizer", metaspace},
                                               {"decoder", metaspace},
                                               {"model", {{"type", "Unigram"}, {"vocab", vocab}}}});
  EXPECT_EQ(tokenizer->decode(ids, true), golden["decoded_text"].get<std::string>());
}

// A model and the tokenizer.json made from it. SentencePiece drops the blanks at a text's ends; the
// components that represent it do not.
TEST(RealVocabulary, T5TypeFromBothFormats) {
  const fs::path folder = shared_data() / "tokenizers/t5_type_legal";
  OUTRIDER_NEED(folder);
  const auto from_json = Tokenizer::load(folder);
  const auto from_model = Tokenizer::load(folder / "spiece.model");
  std::size_t n_tokens = 0;
  for (const char* const book : {"wiki_demo.txt", "tinyshakespeare.txt"}) {
    std::string text = read_file(shared_data() / "text" / book).substr(0, 300000);
    text.resize(scan_utf8(text).n_valid);  // the cut may have split a character
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      line.resize(line.find_last_not_of(' ') + 1);
      line.erase(0, line.find_first_not_of(' '));
      const Ids ids = from_model->encode(line, false);
      EXPECT_EQ(from_json->encode(line, false), ids) << line.substr(0, 200);
      EXPECT_EQ(from_json->decode(ids), from_model->decode(ids)) << line.substr(0, 200);
      n_tokens += ids.size();
    }
  }
  EXPECT_GT(n_tokens, 100000u);
}

// The shipped models have both files, with one vocabulary.
TEST(RealVocabulary, ShippedModelsFromBothFormats) {
  for (const char* const name : {"target", "drafter"}) {
    const fs::path folder = fs::path(OUTRIDER_SOURCE_DIR) / "models" / name;
    const auto from_json = Tokenizer::load(folder / "tokenizer.json");
    const auto from_model = Tokenizer::load(folder / "tokenizer.model");
    ASSERT_EQ(from_json->vocabulary_size(), from_model->vocabulary_size());
    for (TokenId id = 0; id < from_json->vocabulary_size(); ++id) {
      EXPECT_EQ(from_json->piece(id), from_model->piece(id));
      EXPECT_EQ(from_json->bytes(id), from_model->bytes(id));
      EXPECT_EQ(from_json->is_special(id), from_model->is_special(id));
    }
    EXPECT_EQ(from_json->bos_token(), from_model->bos_token());
    EXPECT_EQ(from_json->eos_token(), from_model->eos_token());
    const std::vector<std::string> texts = {
        "",           " ",    "The mill  stands.\n\n\"Yes,\" he said; <0x41> 水車 😀",
        "</s>a<s> b", "▁a ▁", read_file(fs::path(OUTRIDER_SOURCE_DIR) / "README.md")};
    for (const std::string& text : texts) {
      const Ids ids = from_json->encode(text, true);
      EXPECT_EQ(from_model->encode(text, true), ids);
      EXPECT_EQ(from_model->decode(ids), from_json->decode(ids));
    }
  }
}

TEST(RealVocabulary, StoryModelsFromBothFormats) {
  for (const std::string name : {"stories260K", "weak260K"}) {
    const fs::path folder = shared_data() / "models" / name;
    OUTRIDER_NEED(folder);
    const auto from_json = Tokenizer::load(folder);
    const auto from_gguf = Tokenizer::load(folder / (name + "-f32.gguf"));
    for (const auto& tokenizer : {from_json, from_gguf}) {
      EXPECT_EQ(tokenizer->vocabulary_size(), 512);
      EXPECT_EQ(tokenizer->bos_token(), 1);
      EXPECT_EQ(tokenizer->eos_token(), 2);
      EXPECT_TRUE(tokenizer->is_special(0));
    }
    const Json golden = Json::parse(read_file(folder / "golden.json"));
    ASSERT_EQ(golden.size(), 4u);
    for (const Json& one : golden) {
      const auto prompt = one["prompt"].get<std::string>();
      const Ids ids = one["prompt_ids"].get<Ids>();
      Ids all = ids;
      for (const Json& id : one["greedy_ids"]) all.push_back(id.get<TokenId>());
      for (const auto& tokenizer : {from_json, from_gguf}) {
        EXPECT_EQ(tokenizer->encode(prompt, true), ids);
        EXPECT_EQ(tokenizer->decode(ids), prompt);
        EXPECT_EQ(test::stream(*tokenizer, all), tokenizer->decode(all));
      }
      EXPECT_EQ(from_json->decode(all), from_gguf->decode(all));
    }
    // More text than the prompts: a whole book in a language for which the vocabulary has no
    // pieces, and two in English.
    for (const char* const book :
         {"wagahaiwa_nekodearu.txt", "tinyshakespeare.txt", "tinystories_2MiB.txt"}) {
      const std::string text = read_file(shared_data() / "text" / book);
      const Ids ids = from_json->encode(text, true);
      EXPECT_TRUE(ids == from_gguf->encode(text, true)) << book;
      EXPECT_TRUE(from_json->decode(ids) == repair_utf8(text)) << book;
      EXPECT_TRUE(from_gguf->decode(ids) == repair_utf8(text)) << book;
    }
  }
}

TEST(RealVocabulary, RoundTripsOfWholeBooks) {
  const fs::path folder = shared_data() / "tokenizers";
  OUTRIDER_NEED(folder);
  for (const char* const file :
       {"gpt_neox/20B_tokenizer.json", "ggml_vocab/ggml-vocab-deepseek-llm.gguf",
        "ggml_vocab/ggml-vocab-llama-spm.gguf"}) {
    const auto tokenizer = Tokenizer::load(folder / file);
    for (const char* const book : {"wagahaiwa_nekodearu.txt", "wiki_demo.txt"}) {
      const std::string text = repair_utf8(read_file(shared_data() / "text" / book));
      EXPECT_TRUE(tokenizer->decode(tokenizer->encode(text, true)) == text) << file << book;
    }
  }
}

TEST(RealVocabulary, PhiMarkersSwallowWhiteSpace) {
  const fs::path file = shared_data() / "tokenizers/ggml_vocab/ggml-vocab-phi-3.gguf";
  OUTRIDER_NEED(file);
  const auto tokenizer = Tokenizer::load(file);
  EXPECT_EQ(tokenizer->encode("<|user|>\n \nHi<|end|>\n", true), (Ids{1, 32010, 6324, 32007}));
  EXPECT_NE(tokenizer->chat_template().find("<|assistant|>"), std::string::npos);
}

}  // namespace
}  // namespace outrider
