#include "speculate/stream.h"

#include <utility>

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

}  // namespace outrider
