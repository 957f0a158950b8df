// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/merging/piece_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace outrider {
namespace {

TEST(PieceTrie, FindsThePiecesThatATextBeginsWith) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::map<std::string, TokenId> pieces;
    for (int i = 0; i < 60; ++i) {
      std::string text;
      // Bytes of few different values, over the whole range, so that pieces share their beginnings.
      for (unsigned n = random() % 6; n > 0; --n) {
        text.push_back("\x00\x7F\x80\xFFz"[random() % 5]);
      }
      pieces.emplace(text, static_cast<TokenId>(pieces.size()));
    }
    std::vector<PieceTrie::Piece> list;
    for (const auto& [text, id] : pieces) list.push_back({text, id});
    std::shuffle(list.begin(), list.end(), random);
    const PieceTrie trie(list);
    for (int i = 0; i < 200; ++i) {
      std::string text;
      for (unsigned n = random() % 9; n > 0; --n) {
        text.push_back("\x00\x7F\x80\xFFz"[random() % 5]);
      }
      std::size_t longest = 0;
      PieceTrie::Node node = PieceTrie::kRoot;
      for (std::size_t n = 1; n <= text.size(); ++n) {
        const auto found = pieces.find(text.substr(0, n));
        if (found != pieces.end()) longest = n;
        if (node == PieceTrie::kNone) continue;
        node = trie.child(node, text[n - 1]);
        const TokenId id = node == PieceTrie::kNone ? kNoToken : trie.piece(node);
        EXPECT_EQ(id, found == pieces.end() ? kNoToken : found->second);
      }
      EXPECT_EQ(trie.longest_prefix(text), longest);
    }
  }
}

TEST(PieceTrie, OfAllBytes) {
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  std::vector<PieceTrie::Piece> pieces;
  for (const std::string& text : texts) pieces.push_back({text, static_cast<TokenId>(text[0])});
  const PieceTrie trie(pieces);
  for (const std::string& text : texts) {
    EXPECT_EQ(trie.piece(trie.child(PieceTrie::kRoot, text[0])), static_cast<TokenId>(text[0]));
  }
}

TEST(PieceTrie, OfNothing) {
  EXPECT_EQ(PieceTrie().longest_prefix("a"), 0u);
  EXPECT_EQ(PieceTrie({{"", 3}}).longest_prefix("a"), 0u);
  EXPECT_EQ(PieceTrie({{"", 3}}).piece(PieceTrie::kRoot), kNoToken);
}

}  // namespace
}  // namespace outrider
