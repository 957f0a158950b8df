// SPDX-License-Identifier: Apache-2.0
// The tokens that end a text.
#ifndef OUTRIDER_ENGINE_BATCH_END_TOKENS_H_
#define OUTRIDER_ENGINE_BATCH_END_TOKENS_H_

#include <span>
#include <string_view>
#include <vector>

#include "outrider/tokenizer.h"

namespace outrider {

// The tokens that end a text, each once, in this order:
// - `configured`, the ids that the model's configuration names (config.json and
//   generation_config.json, or GGUF's end of sequence, turn and message); they are not checked;
// - the tokenizer's end of text, if it has one;
// - added tokens (Tokenizer::is_added) with a spelling from the list in end_tokens.cc, such as
//   "<|im_end|>", because files often name only one of several. A spelling that ends only a part of
//   an answer is left out if the vocabulary also has tokens that end the whole answer.
std::vector<TokenId> find_end_tokens(std::span<const TokenId> configured,
                                     const Tokenizer& tokenizer);

// The longest spelling of that list at the beginning of `text`; "" if there is none. The result
// stays valid.
std::string_view leading_end_spelling(std::string_view text);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_BATCH_END_TOKENS_H_
