// Which tokens end a text.
#ifndef OUTRIDER_ENGINE_END_TOKENS_H_
#define OUTRIDER_ENGINE_END_TOKENS_H_

#include <span>
#include <string_view>
#include <vector>

#include "outrider/tokenizer.h"

namespace outrider {

// Those that the model's configuration names (config.json and generation_config.json, or GGUF's
// end of sequence, turn and message), that of its tokenizer's configuration, and added tokens
// with a spelling by which models end a text or a turn: files often name but one of several. Each
// once, the configured ones first.
std::vector<TokenId> find_end_tokens(std::span<const TokenId> configured,
                                     const Tokenizer& tokenizer);

// The longest such spelling that `text` begins with; "" if there is none.
std::string_view end_spelling_before(std::string_view text);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_END_TOKENS_H_
