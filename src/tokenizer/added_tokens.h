// Tokens that are found in the text as they stand, before it is cut and merged: special tokens such
// as "<s>", and tokens added to a vocabulary later. From left to right, the longest at each place.
// (llama.cpp looks for the longest token anywhere first. The two differ only where one added token
// overlaps the end of another; this is the order of the tokenizers GGUF files are made from.)
//
// The search is Aho and Corasick's (1975) with spellings and text read backwards: where it stands,
// it knows the longest token that begins there. Each byte is read at most twice and followed by at
// most one step back in the tree on average, however many tokens there are and whatever the text.
// Filled, then finished, then immutable; thread-safe to read, each thread with its own Scratch.
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
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and the white space behind it
  bool normalized = false;   // looked for in the normalised text rather than the raw one
  bool special = false;
};

class AddedTokens {
 public:
  struct Span {
    TextRange range;
    TokenId id;          // kNoToken: ordinary text
    TextRange spelling;  // range without the white space that the token took along
  };
  struct Scratch {
    struct Start {
      std::size_t at;
      std::int32_t token;
    };
    std::vector<Start> starts;
    // How much work there was, for tests: bytes read and steps back in the tree.
    std::uint64_t n_steps = 0;
  };

  // A token with the content of an earlier one, or with none, is never found.
  void add(const AddedToken& token);
  // Once, behind the last add() and before the first split().
  void finish();
  bool empty() const { return tokens_.empty(); }
  // Replaces `spans` by the spans of `text`, in order. Spans of text are not empty. No token is
  // spelled with a byte of the `literal` ranges (in order, apart).
  void split(std::string_view text, std::span<const TextRange> literal, Scratch& scratch,
             std::vector<Span>& spans) const;

 private:
  struct Token {
    TokenId id;
    bool single_word, lstrip, rstrip;
    std::size_t n_bytes;
  };
  // A node of the tree of reversed spellings. Nodes are in the order of their depth, so that a
  // node's children stand together; node 0 is the root, the end of every spelling.
  struct Node {
    std::int32_t first_child = 0;  // up to the next node's
    std::int32_t shorter = 0;      // the longest other node that this one's text begins with
    std::int32_t longest = -1;     // index into tokens_ of the longest token that it begins with
  };
  // 0 if there is none. Of the root's, roots_ knows.
  std::int32_t find_child(std::int32_t node, char byte) const;
  // From a node by a byte to the next: a child, or a shorter one's. Counts steps back to shorter
  // ones, if somebody wants to know.
  std::int32_t find_longer(std::int32_t node, char byte, std::uint64_t* n_steps) const;
  // Every place in text[begin, end) where a token begins that ends there too, the last one first.
  void find_starts(std::string_view text, std::size_t begin, std::size_t end,
                   Scratch& scratch) const;
  // The same for a part that `literal` ranges cut.
  void find_starts_outside(std::string_view text, TextRange part,
                           std::span<const TextRange> literal, Scratch& scratch) const;
  // The white space that the token at `spelling` takes along, as far back as `done`.
  TextRange with_white_space(const Token& token, const TextRange& spelling, std::string_view text,
                             std::size_t done) const;

  std::vector<Token> tokens_;
  std::vector<std::string> contents_;      // of tokens_; until finish()
  std::size_t n_longest_ = 0;              // bytes of the longest content
  std::vector<Node> nodes_;                // and one behind them, for the last one's children
  std::string bytes_;                      // by which each node is reached
  std::array<std::int32_t, 256> roots_{};  // the root's children by their byte; 0: none
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_ADDED_TOKENS_H_
