// Which tokens may follow a text, said by the program: where a library for grammars sits, or rules
// of its own.
#ifndef OUTRIDER_TOKEN_MASK_H_
#define OUTRIDER_TOKEN_MASK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "outrider/types.h"

namespace outrider {

// A place in a text, or in a draft of how it goes on. Valid for the call it is given to.
struct MaskedText {
  // (n >= n_committed): the prompt, what was generated, and the tokens of the draft up to the
  // place.
  std::span<const TokenId> tokens;
  std::size_t n_prompt = 0;     // of them the prompt
  std::size_t n_committed = 0;  // of them those that stand: later calls have the same tokens there
};

// Says which tokens may follow. allowed: ((vocabulary size + 31) / 32) words, all 0; bit id % 32 of
// word id / 32 is the token's. True: the tokens whose bits it has set. False: all, whatever the
// bits are.
//
// The answer has to be a function of `tokens` and n_prompt: target and drafter go by the same one.
// It is asked once for each place, before the places behind it, which are asked for in no other
// order; for places of drafts that turn out not to stand, too; and never behind a token that it did
// not let follow. Called by the thread that generates.
using TokenMask = std::function<bool(const MaskedText& text, std::span<std::uint32_t> allowed)>;

}  // namespace outrider

#endif  // OUTRIDER_TOKEN_MASK_H_
