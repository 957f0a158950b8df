// SPDX-License-Identifier: Apache-2.0
// Pieces of text as a trie of bytes: one descent finds the pieces that are prefixes of a text.
// Immutable once built, thread-safe.
#ifndef OUTRIDER_TOKENIZER_MERGING_PIECE_TRIE_H_
#define OUTRIDER_TOKENIZER_MERGING_PIECE_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "outrider/types.h"

namespace outrider {

class PieceTrie {
 public:
  struct Piece {
    std::string_view text;  // unique
    TokenId id;
  };
  using Node = std::uint32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNone = ~Node{0};

  PieceTrie() : PieceTrie(std::vector<Piece>()) {}
  // Copies the texts; empty ones are never found. Takes time linear in their bytes, plus sorting.
  explicit PieceTrie(std::vector<Piece> pieces);

  Node child(Node node, char byte) const;  // kNone if no piece continues so
  // The piece that ends at `node`; kNoToken if there is none.
  TokenId piece(Node node) const { return nodes_[node].piece; }
  // Bytes of the longest piece that is a prefix of `text`; 0 if there is none.
  std::size_t longest_prefix(std::string_view text) const;

 private:
  // Nodes are in the order of levels, so that the children of one are contiguous.
  struct Inner {
    Node first_child = 0;
    TokenId piece = kNoToken;
    std::uint16_t n_children = 0;  // up to 256
  };
  std::vector<Inner> nodes_;
  std::vector<char> labels_;  // (nodes_.size()): the byte that leads to each node
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_MERGING_PIECE_TRIE_H_
