// The one loop: draft, one target pass, verify, keep what stands.
//
//   draft        drafter.propose(trees)
//   run_target   target.forward(trees): one pass, logits at every root and node
//   verify       acceptance.verify(tree, views, chance): accepted path + one more token
//   commit       sequence.keep(path); the tokens join the text
//   inform       drafter.observe(verdicts)
//
// Plain decoding is the same loop over trees of the root alone.
#ifndef OUTRIDER_SPECULATE_DECODER_H_
#define OUTRIDER_SPECULATE_DECODER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "sampling/chance.h"
#include "sampling/transform.h"
#include "speculate/acceptance.h"
#include "speculate/block_builder.h"
#include "speculate/draft_tree.h"
#include "speculate/drafter.h"
#include "speculate/logits_views.h"

namespace outrider {

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

// One text that is being generated. The context passed to drafters and the verifier's views refer
// to its members: it does not move.
struct Stream {
  Stream(SequenceId id, std::span<const TokenId> prompt, Transform transform, Chance& chance);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Context context() const {
    return {.id = id,
            .tokens = tokens,
            .history = &history,
            .transform = &transform,
            .n_reserved = n_reserved};
  }

  SequenceId id;
  std::vector<TokenId> tokens;  // prompt and committed tokens
  std::int64_t n_prompt;
  std::int64_t max_total = 0;  // no round commits beyond this many tokens
  int n_reserved = 0;          // Context::n_reserved; known from begin() on
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

// Where a round's time went, in seconds.
struct RoundTimes {
  double draft = 0;
  double forward = 0;
  double verify = 0;
};

// Decides, token by token in order, whether a stream goes on; true ends it after this token and
// drops the round's later ones. Sees the stream's tree and views.
using CommitFunction = std::function<bool(Stream&, const Committed&)>;

// What a caller of run_to_end does around each round; either may be empty. Both are given the
// streams of the round, in the order of the call.
struct RoundHooks {
  // May finish streams (a cancelled request): those take no part in the round.
  std::function<void(std::span<Stream* const>)> before;
  std::function<void(std::span<Stream* const>, const RoundTimes&)> after;
};

// Not thread-safe. The target, the drafter and the acceptance outlive it.
class Decoder {
 public:
  // drafter may be null: plain decoding, and the shape does not matter. stop may be null.
  Decoder(LanguageModel& target, Drafter* drafter, const Acceptance& acceptance,
          std::shared_ptr<const TreeShape> shape, const StopRule* stop);

  // Makes room in the text's lists, up to max_total or kReservedAhead_tokens new tokens: once warm,
  // rounds allocate nothing but pages of the KV cache. Opens the target's sequence and runs the
  // prompt but its last token through target and drafter, kPrefillRows tokens (model/prefill.h) at
  // a time. `cancelled` (none: never) is asked before each such step; once it says yes, begin
  // returns false, and the stream is fit for end() alone.
  bool begin(Stream& stream, const std::function<bool()>& cancelled = {});

  // One round for every stream, none of which may be finished. A stream whose max_total is reached,
  // or whose commit says so, is finished afterwards.
  RoundTimes round(std::span<Stream* const> streams, const CommitFunction& on_commit);

  // Rounds until all of the streams are finished; each is dropped from `streams` when it is.
  // Streams that are finished already take no part.
  void run_to_end(std::vector<Stream*>& streams, const CommitFunction& on_commit,
                  const RoundHooks& hooks = {});

  // Forgets the stream in the drafter. Safe to call at any time after begin.
  void end(Stream& stream);

 private:
  void reserve(Stream& stream) const;
  void open_sequence(Stream& stream) const;
  void make_long(Stream& stream);
  // What the drafter reads of the target.
  std::span<const int> feature_layers() const;
  FeatureRows prompt_features(std::size_t n_rows) const;
  void gather_features(std::span<Stream* const> streams);
  Budget draft_budget(const Stream& stream) const;
  // The steps of a round, in this order.
  void draft(std::span<Stream* const> streams);
  void run_target(std::span<Stream* const> streams);
  void verify(std::span<Stream* const> streams);
  void commit(std::span<Stream* const> streams, const CommitFunction& on_commit);
  void inform(std::span<Stream* const> streams);
  void commit_verdict(Stream& stream, const CommitFunction& on_commit);

  LanguageModel* target_;
  Drafter* drafter_;
  const Acceptance* acceptance_;
  std::shared_ptr<const TreeShape> shape_;
  const StopRule* stop_;

  // Reused from round to round.
  ForwardOutput output_;
  std::vector<Context> contexts_;
  std::vector<DraftJob> jobs_;
  BlockBuilder blocks_;
  std::vector<FeatureRows> features_;  // of each stream of the round
  std::vector<float> feature_values_;
  std::vector<RoundResult> results_;
  std::vector<int> path_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DECODER_H_
