// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/merging/piece_trie.h"

#include <algorithm>
#include <cstring>

namespace outrider {

PieceTrie::PieceTrie(std::vector<Piece> pieces) {
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.text < b.text; });
  struct Range {  // a range of pieces that share their first `depth` bytes
    std::size_t begin, end, depth;
  };
  std::vector<Range> ranges = {{0, pieces.size(), 0}};  // per node
  labels_.push_back('\0');
  for (std::size_t node = 0; node < ranges.size(); ++node) {
    auto [begin, end, depth] = ranges[node];
    Inner inner;
    inner.first_child = static_cast<Node>(ranges.size());
    if (begin < end && pieces[begin].text.size() == depth) {
      if (depth > 0) inner.piece = pieces[begin].id;
      ++begin;
    }
    while (begin < end) {
      const char byte = pieces[begin].text[depth];
      std::size_t behind = begin + 1;
      while (behind < end && pieces[behind].text[depth] == byte) ++behind;
      labels_.push_back(byte);
      ranges.push_back({begin, behind, depth + 1});
      ++inner.n_children;
      begin = behind;
    }
    nodes_.push_back(inner);
  }
}

PieceTrie::Node PieceTrie::child(Node node, char byte) const {
  const Inner& inner = nodes_[node];
  const char* const first = labels_.data() + inner.first_child;
  const void* const found = std::memchr(first, byte, inner.n_children);
  if (found == nullptr) return kNone;
  return inner.first_child + static_cast<Node>(static_cast<const char*>(found) - first);
}

std::size_t PieceTrie::longest_prefix(std::string_view text) const {
  std::size_t longest = 0;
  Node node = kRoot;
  for (std::size_t at = 0; at < text.size(); ++at) {
    node = child(node, text[at]);
    if (node == kNone) break;
    if (piece(node) != kNoToken) longest = at + 1;
  }
  return longest;
}

}  // namespace outrider
