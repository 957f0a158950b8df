// SPDX-License-Identifier: Apache-2.0
// A program's own constraint on which tokens may follow a text, for example from another grammar
// library.
#ifndef OUTRIDER_TOKEN_MASK_H_
#define OUTRIDER_TOKEN_MASK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "outrider/types.h"

namespace outrider {

// A position in a text, or in a draft of its continuation. Valid for the call only.
struct MaskedText {
  // (n >= n_committed): the prompt, the generated tokens, and the draft's tokens up to this
  // position.
  std::span<const TokenId> tokens;
  std::size_t n_prompt = 0;     // of these, the prompt
  std::size_t n_committed = 0;  // of these, committed tokens; later calls see the same tokens there
};

// Says which tokens may follow. allowed: ((vocabulary size + 31) / 32) words, initially 0. The
// token's bit is bit id % 32 of word id / 32. Return true to allow the tokens whose bits are set;
// false to allow all tokens, whatever the bits are.
//
// The result must be a function of `tokens` and n_prompt: target and drafter use the same one. It
// is called once for each position, and for a position before the ones after it; otherwise in any
// order. It is called for draft positions that are later rejected, too. It is never called after a
// token that it did not allow. The calling thread is the one that generates.
using TokenMask = std::function<bool(const MaskedText& text, std::span<std::uint32_t> allowed)>;

}  // namespace outrider

#endif  // OUTRIDER_TOKEN_MASK_H_
