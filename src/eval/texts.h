// Texts to measure on, as tokens.
#ifndef OUTRIDER_EVAL_TEXTS_H_
#define OUTRIDER_EVAL_TEXTS_H_

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/tokenizer.h"
#include "outrider/types.h"

namespace outrider::eval {

// The files' documents without the blanks around them; a document ends at `separator` (empty: a
// file is one document). The first `n_texts` of them (0: all); of at least one character. Throws
// Error on a file that cannot be read or is not UTF-8, and when nothing is left.
std::vector<std::string> read_documents(std::span<const std::filesystem::path> files,
                                        std::string_view separator, int n_texts);

// What is predicted, and what it is predicted behind.
struct Passage {
  std::string given = {};
  std::string text = {};
};

// Tokens that one pass can see.
struct Window {
  std::vector<TokenId> tokens;
  int n_given = 0;                           // the first of them, which are only read; >= 1
  std::vector<TokenId> encoder_tokens = {};  // of encoder-decoders: what the encoder reads
};

// A text of any length as windows of at most `n_tokens` tokens, so that every token of it, but
// perhaps the first of all, is predicted once. Where the tokenizer puts a token before every text,
// it stands before every window. A later window, and the first behind more than a window of given
// tokens, begins with the last tokens before it, as many as make half a window: every token is
// predicted from that many, or from all that there are. A token that the end of what is given and
// the text's beginning share is predicted, too. n_tokens >= 2. No window for a text of no token to
// predict.
std::vector<Window> windows_of(const Passage& passage, const Tokenizer& tokenizer, int n_tokens);

// Of an encoder-decoder: its encoder reads what is given, and the text, without blanks before it,
// is predicted behind the start token, all in one window; none where the text has no token. Throws
// Error where nothing is given.
std::vector<Window> windows_behind_encoder(const Passage& passage, const Tokenizer& tokenizer,
                                           TokenId start_token);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_TEXTS_H_
