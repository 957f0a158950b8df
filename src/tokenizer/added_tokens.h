// SPDX-License-Identifier: Apache-2.0
// Tokens that are found in the raw or normalised text before it is cut and merged: special tokens
// such as "<s>", and tokens added to a vocabulary later. Found from left to right, the longest at
// each place. (llama.cpp searches the longest token anywhere first. The two differ only if one
// added token overlaps the end of another; this is the order of the tokenizers GGUF files are made
// from.)
//
// The search is Aho and Corasick's (1975) with reversed spellings and text, so that at each
// position it has the longest token that begins there. Each byte is read at most twice, with at
// most one step back in the tree on average, for any number of tokens and any text. Filled, then
// finished, then immutable; thread-safe to read, each thread with its own Scratch.
#ifndef OUTRIDER_TOKENIZER_ADDED_TOKENS_H_
#define OUTRIDER_TOKENIZER_ADDED_TOKENS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/types.h"

namespace outrider {

struct AddedToken {
  TokenId id = kNoToken;
  std::string content;
  bool single_word = false;  // only if no word character is adjacent
  bool lstrip = false;       // includes the white space before it
  bool rstrip = false;       // includes the white space after it
  bool normalized = false;   // searched in the normalised text instead of the raw one
  bool special = false;
};

class AddedTokens {
 public:
  struct Span {
    TextRange range;
    TokenId id;          // kNoToken: ordinary text
    TextRange spelling;  // without the white space that the token includes
  };
  struct Scratch {
    struct Start {
      std::size_t at;
      std::int32_t token;
    };
    std::vector<Start> starts;
    // Work done, for tests: bytes read and steps back in the tree.
    std::uint64_t n_steps = 0;
  };

  // A token with the content of an earlier one, or with none, is never found.
  void add(const AddedToken& token);
  // Called once, after the last add() and before the first split().
  void finish();
  bool empty() const { return tokens_.empty(); }
  // Replaces `spans` by the spans of `text`, in order. Spans of text are not empty. No token's
  // spelling includes a byte of the `literal` ranges (ascending, disjoint).
  void split(std::string_view text, std::span<const TextRange> literal, Scratch& scratch,
             std::vector<Span>& spans) const;

 private:
  struct Token {
    TokenId id;
    bool single_word, lstrip, rstrip;
    std::size_t n_bytes;
  };
  // A node of the tree of reversed spellings. Nodes are ordered by depth, so a node's children are
  // contiguous; node 0 is the root, the end of every spelling.
  struct Node {
    std::int32_t first_child = 0;  // up to the next node's
    std::int32_t shorter = 0;      // the longest other node whose text is a prefix of this one's
    std::int32_t longest = -1;     // index into tokens_ of the longest token that begins its text
  };
  // 0 if there is none. Not for the root: its children are in roots_.
  std::int32_t find_child(std::int32_t node, char byte) const;
  // The next node after a byte: a child, or a shorter node's child. Counts steps back to shorter
  // nodes in n_steps, if not null.
  std::int32_t find_longer(std::int32_t node, char byte, std::uint64_t* n_steps) const;
  // Every position in text[begin, end) where a token begins that also ends there, the last one
  // first.
  void find_starts(std::string_view text, std::size_t begin, std::size_t end,
                   Scratch& scratch) const;
  // The same for a part that `literal` ranges interrupt.
  void find_starts_outside(std::string_view text, TextRange part,
                           std::span<const TextRange> literal, Scratch& scratch) const;
  // The range of the token at `spelling` with the white space that it includes, but not before
  // `done`.
  TextRange with_white_space(const Token& token, const TextRange& spelling, std::string_view text,
                             std::size_t done) const;

  std::vector<Token> tokens_;
  std::vector<std::string> contents_;      // of tokens_; until finish()
  std::size_t n_longest_ = 0;              // bytes of the longest content
  std::vector<Node> nodes_;                // and a sentinel, for the last one's children
  std::string bytes_;                      // the byte that leads to each node
  std::array<std::int32_t, 256> roots_{};  // the root's children by byte; 0: none
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_ADDED_TOKENS_H_
