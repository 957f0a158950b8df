// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/same_vocabulary.h"

#include <gtest/gtest.h>

#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using test::Json;

std::unique_ptr<PipelineTokenizer> with_added(const Json& added) {
  Json document = test::byte_level_document(test::byte_vocabulary(), Json::array());
  document["added_tokens"] = added;
  return test::make_tokenizer(document);
}

Json token(int id, const char* content, bool special) {
  return {{"id", id}, {"content", content}, {"special", special}};
}

bool is_same(const Tokenizer& expected, const Tokenizer& other) {
  try {
    require_same_vocabulary(expected, other, "compare", "other");
  } catch (const Error&) {
    return false;
  }
  return true;
}

TEST(SameVocabulary, ANumberSaysWhatTheComparisonSays) {
  std::vector<std::unique_ptr<PipelineTokenizer>> tokenizers;
  tokenizers.push_back(with_added(Json::array()));
  tokenizers.push_back(with_added(Json::array({token(256, "ab", false)})));
  tokenizers.push_back(
      with_added(Json::array({token(256, "ab", true)})));  // the same: special tokens do not count
  tokenizers.push_back(with_added(Json::array({token(256, "ac", false)})));  // another spelling
  tokenizers.push_back(with_added(Json::array({token(257, "ab", false)})));  // after a hole
  tokenizers.push_back(
      with_added(Json::array({token(256, "abc", false), token(257, "b c", false)})));
  int n_same = 0;
  for (const auto& left : tokenizers) {
    for (const auto& right : tokenizers) {
      const bool same = is_same(*left, *right);
      EXPECT_EQ(vocabulary_id(*left) == vocabulary_id(*right), same);
      n_same += same ? 1 : 0;
    }
  }
  EXPECT_GE(n_same, 8);
  EXPECT_LT(n_same, 36);
}

// Existing datastores contain it. (Computed by a few lines of Python written from the definition.)
TEST(SameVocabulary, TheNumberStaysWhatItIs) {
  const VocabularyId id = vocabulary_id(*with_added(Json::array({token(256, "<s>", true)})));
  EXPECT_EQ(id.size, 257);
  EXPECT_EQ(id.fingerprint, 0x402271bcd0d4acc3U);
}

}  // namespace
}  // namespace outrider
