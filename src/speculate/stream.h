// SPDX-License-Identifier: Apache-2.0
// The state of one text in the decode loop, and what is kept of it after it has ended.
#ifndef OUTRIDER_SPECULATE_STREAM_H_
#define OUTRIDER_SPECULATE_STREAM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "sampling/chance.h"
#include "sampling/transform.h"
#include "speculate/acceptances/acceptance.h"
#include "speculate/draft_tree.h"
#include "speculate/drafter.h"
#include "speculate/logits_views.h"

namespace outrider {

// How the drafts of a stream are made and verified. All but the shape must outlive the stream.
struct Drafting {
  Drafter* drafter = nullptr;  // null: plain decoding; the shape is ignored
  const Acceptance* acceptance = nullptr;
  std::shared_ptr<const TreeShape> shape = nullptr;
  const StopRule* stop = nullptr;  // may be null
};

// A committed token and its origin.
struct Committed {
  TokenId id = kNoToken;
  int node = 0;         // its node in the round's tree; -1 for the verifier's own token
  int logits_node = 0;  // the node whose logits gave it
};

struct StreamCounts {
  std::int64_t target_passes = 0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;  // accepted nodes whose tokens were committed
  std::int64_t rejected = 0;  // rounds that ended with a token in place of rejected ones
  RuleCost rule_cost;         // summed over committed tokens, each counted once
};

// New tokens for which a text's lists reserve memory at its beginning; lists of longer texts grow
// as needed. Most limits are far above what is generated (`--max-tokens` as "until it ends"). Pages
// of the KV cache are taken as tokens come.
inline constexpr std::int64_t kReservedAhead_tokens = 4096;

struct KeptText;

// One text that is being generated. Drafters' contexts and the verifier's views refer to its
// members, so it must not move.
struct Stream {
  // Without `drafting` it uses its decoder's.
  Stream(SequenceId id, std::span<const TokenId> prompt, Transform transform, Chance& chance,
         Drafting drafting = {});
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Context context() const {
    return {.id = id,
            .tokens = tokens,
            .history = &history,
            .transform = &transform,
            .n_reserved = n_reserved,
            .encoder_tokens = encoder_tokens};
  }

  // What n_tokens more take of the target's KV cache, including a drafter's sequence there.
  SequenceGrowth growth(int n_tokens) const;

  // Whether an earlier text had another drafter, so that this one's has no state of it.
  bool has_other_drafter(const KeptText& earlier) const;

  // Whether the drafter gets no calls until it drafts.
  bool drafter_is_deferred() const {
    return defers_drafter && drafting.drafter != nullptr && drafting.drafter->catches_up();
  }

  // Tokens to run before the next round can draft: all but the last, which is its root.
  std::size_t n_to_run() const { return tokens.size() - 1 - n_run; }

  SequenceId id;
  Drafting drafting;
  std::vector<TokenId> encoder_tokens = {};  // of an encoder-decoder, set before the text is opened
  double encoder_seconds = 0;                // time of the encoders, including a drafter's
  std::vector<TokenId> tokens;               // prompt and committed tokens
  std::size_t n_run = 0;  // of these, run by the target and, if it reads them, by the drafter
  std::int64_t n_prompt;
  std::int64_t n_reused = 0;   // of the prompt, taken over from an earlier text
  std::int64_t max_total = 0;  // no round commits beyond this many tokens
  int n_reserved = 0;          // Context::n_reserved; known from begin() on
  // Set before the text is opened: the prompt is not shown to a drafter with catches_up(), which
  // runs it at its first draft, if any.
  bool defers_drafter = false;
  Transform transform;
  TokenHistory history;
  Chance* chance;
  std::unique_ptr<Sequence> sequence;  // the target's
  DraftTree tree;
  Verdict verdict;
  LogitsViews views;
  StreamCounts counts;
  bool finished = false;
};

// A text that has ended and is kept: a later text that begins alike reuses its keys and values.
struct KeptText {
  SequenceId id = 0;
  std::shared_ptr<Drafter> drafter;          // has the text's state; may be null
  std::vector<TokenId> tokens;               // those of its stream
  std::unique_ptr<Sequence> sequence;        // that of its stream
  std::vector<SequenceId> stands_for = {};   // texts with which it begins, the last ones first
  std::vector<TokenId> encoder_tokens = {};  // those of its stream

  bool is_named(SequenceId text) const {
    return text == id || std::find(stands_for.begin(), stands_for.end(), text) != stands_for.end();
  }
};

inline bool Stream::has_other_drafter(const KeptText& earlier) const {
  return earlier.drafter.get() != drafting.drafter;
}

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_STREAM_H_
