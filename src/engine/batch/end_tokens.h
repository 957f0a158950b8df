// SPDX-License-Identifier: Apache-2.0
// The tokens that end a text.
#ifndef OUTRIDER_ENGINE_BATCH_END_TOKENS_H_
#define OUTRIDER_ENGINE_BATCH_END_TOKENS_H_

#include <span>
#include <string_view>
#include <vector>

#include "outrider/tokenizer.h"

namespace outrider {

// Tokens named by the model's configuration (config.json and generation_config.json, or GGUF's end
// of sequence, turn and message) and by the tokenizer's. Also added tokens whose spelling is known
// to end a text or a turn, because files often name only one of several. Each once, configured ones
// first.
std::vector<TokenId> find_end_tokens(std::span<const TokenId> configured,
                                     const Tokenizer& tokenizer);

// The longest such spelling that `text` begins with; "" if there is none.
std::string_view end_spelling_before(std::string_view text);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_BATCH_END_TOKENS_H_
