// SPDX-License-Identifier: Apache-2.0
#include "speculate/stream.h"

#include <utility>

#include "model/cache/cache_group.h"

namespace outrider {

Stream::Stream(SequenceId stream_id, std::span<const TokenId> prompt, Transform stream_transform,
               Chance& stream_chance, Drafting stream_drafting)
    : id(stream_id),
      drafting(std::move(stream_drafting)),
      tokens(prompt.begin(), prompt.end()),
      n_prompt(static_cast<std::int64_t>(prompt.size())),
      transform(std::move(stream_transform)),
      chance(&stream_chance),
      views(transform, history) {
  history.add_prompt(prompt);
}

SequenceGrowth Stream::growth(int n_tokens) const {
  const bool twice = drafting.drafter != nullptr && drafting.drafter->uses_target_cache();
  return {sequence.get(), twice ? 2 * n_tokens + kPageTokens : n_tokens};
}

}  // namespace outrider
