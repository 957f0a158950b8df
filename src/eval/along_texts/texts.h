// SPDX-License-Identifier: Apache-2.0
// Texts to measure on, as tokens.
#ifndef OUTRIDER_EVAL_ALONG_TEXTS_TEXTS_H_
#define OUTRIDER_EVAL_ALONG_TEXTS_TEXTS_H_

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/tokenizer.h"
#include "outrider/types.h"

namespace outrider::eval {

// The files' documents without surrounding blanks; a document ends at `separator` (empty: a file is
// one document). The first `n_texts` of them (0: all) that are not empty. Throws Error on a file
// that cannot be read or is not UTF-8, and if there are none.
std::vector<std::string> read_documents(std::span<const std::filesystem::path> files,
                                        std::string_view separator, int n_texts);

// The text to predict, and the text given before it.
struct Passage {
  std::string given = {};
  std::string text = {};
};

// Tokens for one pass.
struct Window {
  std::vector<TokenId> tokens;
  int n_given = 0;                           // the first of them, which are only read; >= 1
  std::vector<TokenId> encoder_tokens = {};  // for encoder-decoders: the encoder's input
};

// Cuts a text of any length into windows of at most `n_tokens` tokens, so that every token of it,
// except possibly the very first, is predicted once. If the tokenizer puts a token before every
// text, every window begins with it. A later window, and the first one if more than a window is
// given, begins with the last tokens before it, up to half a window: every token is predicted from
// that many, or from all there are. A token that spans the end of the given text and the beginning
// of the text is predicted, too. n_tokens >= 2. Empty for a text without a token to predict.
std::vector<Window> windows_of(const Passage& passage, const Tokenizer& tokenizer, int n_tokens);

// For an encoder-decoder: the encoder reads the given text, and the text, without leading blanks,
// is predicted after the start token, all in one window; empty if the text has no token. Throws
// Error if nothing is given.
std::vector<Window> windows_behind_encoder(const Passage& passage, const Tokenizer& tokenizer,
                                           TokenId start_token);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_ALONG_TEXTS_TEXTS_H_
