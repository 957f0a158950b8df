// SPDX-License-Identifier: Apache-2.0
// The decode loop: draft, one target pass, verify, keep accepted tokens.
//
//   draft        drafter.propose(trees)
//   run_target   target.forward(trees): one pass, logits at every root and node
//   verify       acceptance.verify(tree, views, chance): accepted path + one more token
//   commit       sequence.keep(path); the tokens are appended to the text
//   inform       drafter.observe(verdicts)
//
// Plain decoding is the same loop with trees of the root alone. Every stream has its own drafter,
// rule and shape. Prompt tokens run in the same passes (prefill).
#ifndef OUTRIDER_SPECULATE_DECODER_H_
#define OUTRIDER_SPECULATE_DECODER_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/language_model.h"
#include "speculate/acceptances/acceptance.h"
#include "speculate/block_builder.h"
#include "speculate/drafter.h"
#include "speculate/stream.h"

namespace outrider {

// A stream's part of a round. A stream with tokens to run (Stream::n_to_run) runs some of them; any
// other drafts and is verified.
struct StreamShare {
  Stream* stream = nullptr;
  std::size_t n_to_run = 0;          // from 1 to the stream's n_to_run(), if that is not 0
  int draft_depth = kMaxDraftNodes;  // limit of the deepest drafted token
  DraftWorth* worth = nullptr;       // DraftJob::worth
  DraftChoice* choice = nullptr;     // DraftJob::choice
  bool recent_only = false;          // DraftJob::recent_only
};

// The time of a round's steps, in seconds.
struct RoundTimes {
  std::chrono::steady_clock::time_point began = {};
  double draft = 0;
  double forward = 0;
  double verify = 0;
};

// Decides for each token, in order, whether the stream ends: true ends it after this token and
// drops the round's later tokens. May read the stream's tree and views.
using CommitFunction = std::function<bool(Stream&, const Committed&)>;

// Callbacks of run_to_end around each round; either may be empty. Both get the streams of the
// round, in the order of the call.
struct RoundHooks {
  // May finish streams (a cancelled request): these take no part in the round.
  std::function<void(std::span<Stream* const>)> before;
  std::function<void(std::span<Stream* const>, const RoundTimes&)> after;
};

// Not thread-safe. The target, the drafters and the acceptances must outlive it.
class Decoder {
 public:
  // Every stream must have its own drafting.
  explicit Decoder(LanguageModel& target) : target_(&target) {}
  // drafting: for streams that have none.
  Decoder(LanguageModel& target, Drafting drafting)
      : target_(&target), drafting_(std::move(drafting)) {}
  Decoder(LanguageModel& target, Drafter* drafter, const Acceptance& acceptance,
          std::shared_ptr<const TreeShape> shape, const StopRule* stop)
      : Decoder(target, Drafting{drafter, &acceptance, std::move(shape), stop}) {}

  // Opens the target's sequence and begins the text in the drafter; all tokens but the last are to
  // be run. Reserves memory in the text's lists for up to max_total or kReservedAhead_tokens new
  // tokens. Once warm, rounds allocate nothing but pages of the KV cache.
  void open(Stream& stream) const;
  // Opens a stream that begins like an earlier text of this decoder. It shares the keys and values
  // of the common tokens; the results have the same bits. Stream::n_reused is the number of tokens
  // that are not run again. If the earlier text had another drafter, the stream's drafter runs
  // these tokens itself. A drafter that reads features cannot; then nothing is shared.
  void open_behind(Stream& stream, const KeptText& earlier) const;
  // The two steps of open() and open_behind(), for callers that check the KV cache's memory between
  // them. open_target opens the target's sequence and runs the target's encoder, if any.
  // begin_drafter begins the text in the drafter. Without the second step, the stream's sequence
  // must be dropped.
  void open_target(Stream& stream, const KeptText* earlier) const;
  void begin_drafter(Stream& stream, const KeptText* earlier) const;
  // Releases the stream's pages and the drafter's state of it. open() begins it again, with all of
  // its tokens to be run.
  void close(Stream& stream) const;

  // Opens the stream and runs its prompt: rounds of this stream alone, of kPrefillRows tokens
  // (model/prefill.h) each. `cancelled` (empty: never) is called before each of them. If it returns
  // true, begin returns false, and only end() may be called for the stream.
  bool begin(Stream& stream, const std::function<bool()>& cancelled = {});
  // begin() with open_behind().
  bool begin_behind(Stream& stream, const KeptText& earlier,
                    const std::function<bool()>& cancelled = {});

  // Runs one pass of the target for these streams; no stream may appear twice or be finished.
  // Afterwards a stream is finished if its max_total is reached or its commit said so.
  RoundTimes round(std::span<const StreamShare> shares, const CommitFunction& on_commit);
  // The same with the deepest drafts, for streams that have nothing to run.
  RoundTimes round(std::span<Stream* const> streams, const CommitFunction& on_commit);

  // Runs rounds until all streams are finished; each is removed from `streams` when it is. Streams
  // that are finished already take no part.
  void run_to_end(std::vector<Stream*>& streams, const CommitFunction& on_commit,
                  const RoundHooks& hooks = {});

  // A drafter of the round, and its first layer among the features that the pass returns.
  struct DrafterShare {
    Drafter* drafter;
    int first_layer;
    std::chrono::steady_clock::time_point began = {};  // of drafting; unset if it was not asked
    double seconds = 0;                                // of drafting
    double learn_seconds = 0;                          // of observing the results
  };
  // ForwardOutput::experts_a_layer of the last round's target pass.
  double experts_a_layer() const { return output_.experts_a_layer; }
  // Those of the last round.
  std::span<const DrafterShare> drafters() const { return drafters_; }
  // Seconds of the drafter in the last round, for drafting and for observing the results; 0 if it
  // drafted nothing.
  double draft_seconds(const Drafter* drafter) const;

  // Drops the drafter's state of the text. May be called at any time after open.
  static void end(const Stream& stream);
  static void end(const KeptText& kept);

 private:
  bool run_all(Stream& stream, const std::function<bool()>& cancelled);
  void reserve(Stream& stream) const;
  void open_sequence(Stream& stream) const;
  std::size_t take_over(Stream& stream, const KeptText& earlier) const;
  void make_long(Stream& stream);
  void list_drafters();
  FeatureRows columns_of(const Drafter* drafter, std::span<const float> values) const;
  void gather_features();
  Budget draft_budget(const StreamShare& share) const;
  // The steps of a round, in this order.
  void draft();
  void limit_drafts_to_memory();
  void run_target();
  void verify();
  void commit(const CommitFunction& on_commit);
  void inform();
  void inform_of_prompts();
  void commit_verdict(Stream& stream, const CommitFunction& on_commit);

  LanguageModel* target_;
  Drafting drafting_;

  // State of the round.
  std::vector<StreamShare> drafted_;  // streams that draft
  std::vector<StreamShare> running_;  // streams with tokens to run
  std::vector<int> first_logits_;  // for each of drafted_: its root's row among those with logits
  std::vector<int> first_row_;     // the same among all rows of the pass
  std::vector<DrafterShare> drafters_;
  std::vector<int> feature_layers_;  // of all drafters, concatenated
  bool drafts_fit_ = true;           // the KV cache can hold any draft
  bool scratch_fits_ = true;         // and the largest number of scratch nodes

  // Reused from round to round.
  std::vector<StreamShare> shares_;
  std::vector<SequenceGrowth> growths_;
  ForwardOutput output_;
  std::vector<Context> contexts_;  // of each of drafted_
  std::vector<DraftJob> jobs_;
  BlockBuilder blocks_;
  std::vector<FeatureRows> features_;  // of each of drafted_
  std::vector<float> feature_values_;
  std::vector<RoundResult> results_;
  std::vector<int> path_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DECODER_H_
