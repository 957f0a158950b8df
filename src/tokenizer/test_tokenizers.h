// SPDX-License-Identifier: Apache-2.0
// Shared by this layer's tests only: reading files, making tokenizers from JSON, and a tokenizer
// from tiktoken ranks.
#ifndef OUTRIDER_TOKENIZER_TEST_TOKENIZERS_H_
#define OUTRIDER_TOKENIZER_TEST_TOKENIZERS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "outrider/error.h"
#include "tokenizer/formats/tokenizer_json.h"
#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/texts/byte_level.h"
#include "tokenizer/texts/utf8.h"

namespace outrider::test {

using Json = nlohmann::json;
using Ids = std::vector<TokenId>;

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::filesystem::path shared_data() { return OUTRIDER_SHARED_DATA; }

inline std::unique_ptr<PipelineTokenizer> make_tokenizer(const Json& document) {
  return std::make_unique<PipelineTokenizer>(parse_tokenizer_json(document.dump(), "test"));
}

// Decodes token by token with a StreamingDecoder. Checks that every piece consists of whole
// characters.
inline std::string stream(const Tokenizer& tokenizer, const Ids& ids, bool keep_special = false) {
  StreamingDecoder decoder(tokenizer, keep_special);
  std::string text;
  for (const TokenId id : ids) {
    const std::string piece = decoder.push(id);
    EXPECT_TRUE(is_valid_utf8(piece)) << "token " << id;
    text += piece;
  }
  return text + decoder.finish();
}

inline int digit_of_base64(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : 63;
}

inline std::string from_base64(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(digit_of_base64(c));
    n_bits += 6;
    if (n_bits >= 8) {
      n_bits -= 8;
      out.push_back(static_cast<char>(bits >> n_bits & 0xFF));
    }
  }
  return out;
}

// The 256 byte tokens of a byte-level vocabulary, ids 0..255 in byte order.
inline Json byte_vocabulary() {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) {
    std::string piece;
    append_byte_level(std::string(1, static_cast<char>(byte)), piece);
    vocab[piece] = byte;
  }
  return vocab;
}

inline Json byte_level_component(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

// A byte-level tokenizer.json with this vocabulary and merges.
inline Json byte_level_document(const Json& vocab, const Json& merges) {
  return {{"version", "1.0"},
          {"added_tokens", Json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level_component(true)},
          {"post_processor", nullptr},
          {"decoder", byte_level_component(true)},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
}

}  // namespace outrider::test

#endif  // OUTRIDER_TOKENIZER_TEST_TOKENIZERS_H_
