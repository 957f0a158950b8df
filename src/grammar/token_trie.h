// SPDX-License-Identifier: Apache-2.0
// A vocabulary as a trie of bytes.
//
// Made once for a model and shared by all of its matchers. It omits special, added and end tokens,
// and those of no bytes or more than 65,535. Immutable; thread-safe.
#ifndef OUTRIDER_GRAMMAR_TOKEN_TRIE_H_
#define OUTRIDER_GRAMMAR_TOKEN_TRIE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/tokenizer.h"
#include "outrider/types.h"

namespace outrider {

class TokenTrie {
 public:
  // n_ids: the model's vocabulary size, which may exceed the tokenizer's. end_tokens: they end a
  // text and are no other part of it.
  TokenTrie(const Tokenizer& tokenizer, int n_ids, std::span<const TokenId> end_tokens);
  // The same for tokens given by their bytes; empty ones are not in the trie.
  TokenTrie(const std::vector<std::string>& tokens, std::span<const TokenId> end_tokens);

  // The tokens of at most kLongestShortToken_bytes (grammar/limits.h), or the longer ones.
  //
  // Nodes are in depth-first order: a node's first child, if any, follows it, and `end` is the node
  // after its subtree. The root is not included.
  class Part {
   public:
    struct Node {
      std::int32_t end = 0;
      std::int32_t first_token = 0;  // of those that end here, up to the next node's first
      std::uint16_t depth = 0;       // bytes up to here, minus one
      std::uint8_t byte = 0;
    };
    std::span<const Node> nodes() const { return {nodes_.data(), nodes_.size() - 1}; }
    std::span<const TokenId> tokens_at(std::size_t node) const {
      const auto first = static_cast<std::size_t>(nodes_[node].first_token);
      return std::span(tokens_).subspan(
          first, static_cast<std::size_t>(nodes_[node + 1].first_token) - first);
    }
    int depth() const { return depth_; }  // bytes of the longest token
    TokenId longest(std::string_view text) const;

   private:
    friend class TokenTrie;
    void build(const TokenTrie& trie, std::vector<TokenId> tokens);

    std::vector<Node> nodes_;  // and a last one, whose first_token is the number of tokens
    std::vector<TokenId> tokens_;
    int depth_ = 0;
  };
  const Part& short_tokens() const { return short_tokens_; }
  const Part& long_tokens() const { return long_tokens_; }
  int depth() const { return std::max(short_tokens_.depth(), long_tokens_.depth()); }

  int n_ids() const { return static_cast<int>(first_byte_.size()) - 1; }
  // 64-bit words of a mask over ids.
  std::size_t n_words() const { return (first_byte_.size() - 1 + 63) / 64; }
  // Empty for tokens outside the trie, and for invalid ids.
  std::string_view bytes(TokenId id) const;
  // The longest token that is a prefix of the text; kNoToken: none.
  TokenId longest(std::string_view text) const;
  bool is_end(TokenId id) const;
  std::span<const TokenId> end_tokens() const { return end_tokens_; }

 private:
  Part short_tokens_;
  Part long_tokens_;
  std::vector<std::uint32_t> first_byte_;  // (n_ids + 1), in bytes_
  std::string bytes_;
  std::vector<TokenId> end_tokens_;
};

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_TOKEN_TRIE_H_
