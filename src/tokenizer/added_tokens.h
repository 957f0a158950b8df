// Tokens that are found in the text as they stand, before it is cut and merged: special tokens such
// as "<s>", and tokens added to a vocabulary later. From left to right, the longest at each place.
// (llama.cpp looks for the longest token anywhere first. The two differ only where one added token
// overlaps the end of another; this is the order of the tokenizers GGUF files are made from.)
// Immutable once filled, thread-safe to read.
#ifndef OUTRIDER_TOKENIZER_ADDED_TOKENS_H_
#define OUTRIDER_TOKENIZER_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/types.h"
#include "tokenizer/pattern.h"

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

  // A token with the content of an earlier one, or with none, is never found.
  void add(const AddedToken& token);
  bool empty() const { return tokens_.empty(); }
  // Replaces `spans` by the spans of `text`, in order. Spans of text are not empty. No token is
  // spelled with a byte of the `literal` ranges (in order, apart).
  void split(std::string_view text, std::span<const TextRange> literal,
             std::vector<Span>& spans) const;

 private:
  struct Token {
    TokenId id;
    bool single_word, lstrip, rstrip;
  };
  // A tree of bytes; the children of a node are a list.
  struct Node {
    char byte;
    std::int32_t child = -1;
    std::int32_t sibling = -1;
    std::int32_t token = -1;  // index into tokens_ of the token that ends here
  };
  std::int32_t find_child(std::int32_t first, char byte) const;

  std::vector<Token> tokens_;
  std::vector<Node> nodes_;
  std::array<std::int32_t, 256> roots_ = filled_roots();
  static std::array<std::int32_t, 256> filled_roots() {
    std::array<std::int32_t, 256> roots{};
    roots.fill(-1);
    return roots;
  }
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_ADDED_TOKENS_H_
