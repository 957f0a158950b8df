// One text that is being generated, and what is left of it when it is over.
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
#include "speculate/acceptance.h"
#include "speculate/draft_tree.h"
#include "speculate/drafter.h"
#include "speculate/logits_views.h"

namespace outrider {

// How the drafts of a stream are made and judged. All but the shape outlive the stream.
struct Drafting {
  Drafter* drafter = nullptr;  // null: plain decoding, and the shape does not matter
  const Acceptance* acceptance = nullptr;
  std::shared_ptr<const TreeShape> shape = nullptr;
  const StopRule* stop = nullptr;  // may be null
};

// A committed token and where it came from.
struct Committed {
  TokenId id = kNoToken;
  int node = 0;         // its node in the round's tree; -1 for the verifier's own token
  int logits_node = 0;  // the node whose logits are behind it
};

struct StreamCounts {
  std::int64_t target_passes = 0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;  // accepted nodes whose tokens were committed
  std::int64_t rejected = 0;  // rounds that ended with a token in the place of rejected ones
  RuleCost rule_cost;         // summed over committed tokens, each counted once
};

// How many new tokens the lists of a text get room for when it begins; a longer text's lists grow
// as they must. Most limits are far above what is generated (`--max-tokens` as "until it ends").
// Pages of the KV cache are taken as tokens come.
inline constexpr std::int64_t kReservedAhead_tokens = 4096;

struct KeptText;

// One text that is being generated. The context passed to drafters and the verifier's views refer
// to its members: it does not move.
struct Stream {
  // Without a drafting of its own it takes its decoder's.
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

  // What n_tokens more take of the target's KV cache, a drafter's own sequence there included.
  SequenceGrowth growth(int n_tokens) const;

  // Whether an earlier text had another drafter: this one's has nothing of it.
  bool has_other_drafter(const KeptText& earlier) const;

  // Whether the drafter is to be left alone until it drafts.
  bool drafter_is_deferred() const {
    return defers_drafter && drafting.drafter != nullptr && drafting.drafter->catches_up();
  }

  // Tokens that have to be run before the next round can draft: all but the last, which roots it.
  std::size_t n_to_run() const { return tokens.size() - 1 - n_run; }

  SequenceId id;
  Drafting drafting;
  std::vector<TokenId> encoder_tokens = {};  // of an encoder-decoder, set before the text is opened
  double encoder_seconds = 0;                // what encoders took for them, a drafter's, too
  std::vector<TokenId> tokens;               // prompt and committed tokens
  std::size_t n_run = 0;  // of them, by the target and, as far as it reads them, the drafter
  std::int64_t n_prompt;
  std::int64_t n_reused = 0;   // of the prompt, taken over from an earlier text
  std::int64_t max_total = 0;  // no round commits beyond this many tokens
  int n_reserved = 0;          // Context::n_reserved; known from begin() on
  // Set before the text is opened: a drafter that catches_up() is not shown its prompt. It runs
  // that when it drafts for the first time, if it ever does.
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

// A text that is over and has not been ended: a later one that begins alike begins with the keys
// and values that are there of it.
struct KeptText {
  SequenceId id = 0;
  std::shared_ptr<Drafter> drafter;          // which knows it; may be null
  std::vector<TokenId> tokens;               // those of its stream
  std::unique_ptr<Sequence> sequence;        // likewise
  std::vector<SequenceId> stands_for = {};   // texts that it begins with, the last ones first
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
