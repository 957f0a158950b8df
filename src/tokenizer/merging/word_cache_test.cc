// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/merging/word_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace outrider {
namespace {

// Entries found are those stored for that word; a small set of words stays.
TEST(WordCache, FindsWhatWasPutIn) {
  std::mt19937 random(9);
  WordCache cache;
  std::map<std::string, std::vector<TokenId>> all;
  std::size_t n_found = 0;
  std::size_t n_asked = 0;
  for (int i = 0; i < 300000; ++i) {
    // Words of all lengths that differ in one position, some consisting of zeros.
    std::string word(random() % WordCache::kMaxBytes + 1, random() % 2 == 0 ? 'a' : '\0');
    word[random() % word.size()] = static_cast<char>(random() % 256);
    word[random() % word.size()] = static_cast<char>(random() % 256);
    const WordCache::Key key = WordCache::key_of(word);
    std::vector<TokenId> ids = {-7};
    if (cache.find(key, ids)) {
      ids.erase(ids.begin());
      ASSERT_TRUE(all.contains(word));
      EXPECT_EQ(ids, all[word]);
      ++n_found;
    } else {
      EXPECT_EQ(ids.size(), 1u);
      ids.clear();
      for (std::size_t n = random() % (WordCache::kMaxTokens + 1); n > 0; --n) {
        ids.push_back(static_cast<TokenId>(random() % 1000000));
      }
      cache.put(key, ids);
      all[word] = ids;
    }
    if (i % 3 == 0) {
      const WordCache::Key common = WordCache::key_of("the" + std::to_string(i / 3 % 50));
      ++n_asked;
      ids.clear();
      if (cache.find(common, ids)) {
        EXPECT_EQ(ids, std::vector<TokenId>(1, i / 3 % 50));
      } else {
        cache.put(common, std::vector<TokenId>(1, i / 3 % 50));
        --n_asked;
      }
    }
  }
  EXPECT_GT(n_found, 10000u);
  EXPECT_GT(n_asked, 90000u);
}

}  // namespace
}  // namespace outrider
