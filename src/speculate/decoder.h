// The one loop: draft, one target pass, verify, keep what stands.
//
//   draft        drafter.propose(trees)
//   run_target   target.forward(trees): one pass, logits at every root and node
//   verify       acceptance.verify(tree, views, chance): accepted path + one more token
//   commit       sequence.keep(path); the tokens join the text
//   inform       drafter.observe(verdicts)
//
// Plain decoding is the same loop over trees of the root alone. Every stream has its own drafter,
// rule and shape; tokens of prompts are run in the same passes.
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
#include "speculate/acceptance.h"
#include "speculate/block_builder.h"
#include "speculate/drafter.h"
#include "speculate/stream.h"

namespace outrider {

// What a stream does in a round. One that has tokens to run (Stream::n_to_run) runs some of them;
// another drafts, and is judged.
struct StreamShare {
  Stream* stream = nullptr;
  std::size_t n_to_run = 0;           // at least one and at most the stream's, where it has any
  int draft_depth = kMostDraftNodes;  // of the deepest drafted token at most
  DraftWorth* worth = nullptr;        // DraftJob::worth
  DraftChoice* choice = nullptr;      // DraftJob::choice
  bool recent_only = false;           // DraftJob::recent_only
};

// Where a round's time went, in seconds from its beginning on.
struct RoundTimes {
  std::chrono::steady_clock::time_point began = {};
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

// Not thread-safe. The target, the drafters and the acceptances outlive it.
class Decoder {
 public:
  // Each stream brings its own drafting.
  explicit Decoder(LanguageModel& target) : target_(&target) {}
  // What streams take that bring none of their own.
  Decoder(LanguageModel& target, Drafting drafting)
      : target_(&target), drafting_(std::move(drafting)) {}
  Decoder(LanguageModel& target, Drafter* drafter, const Acceptance& acceptance,
          std::shared_ptr<const TreeShape> shape, const StopRule* stop)
      : Decoder(target, Drafting{drafter, &acceptance, std::move(shape), stop}) {}

  // Opens the target's sequence and begins the text in the drafter; all tokens but the last are to
  // be run. Makes room in the text's lists, up to max_total or kReservedAhead_tokens new tokens:
  // once warm, rounds allocate nothing but pages of the KV cache.
  void open(Stream& stream) const;
  // The same for a stream that begins like an earlier text of this decoder: it shares the keys and
  // values of the tokens that both begin with, and what comes of it has the same bits.
  // Stream::n_reused says how many tokens are not run again. Where the earlier text had another
  // drafter, the stream's runs these by itself, if it can: one that reads features cannot, and
  // nothing is shared.
  void open_behind(Stream& stream, const KeptText& earlier) const;
  // open() and open_behind() in two steps, for callers that look at the KV cache's memory between
  // them: the target's sequence, and the target's encoder, where it has one, and the drafter. Where
  // the second does not follow, the stream's sequence is to be dropped.
  void open_target(Stream& stream, const KeptText* earlier) const;
  void begin_drafter(Stream& stream, const KeptText* earlier) const;
  // Gives back the stream's pages and what its drafter has of it; open() begins it again, all of
  // its tokens to be run.
  void close(Stream& stream) const;

  // open(), and rounds of the stream alone, kPrefillRows tokens (model/prefill.h) each, until
  // nothing is to be run. `cancelled` (none: never) is asked before each of them; once it says yes,
  // begin returns false, and the stream is fit for end() alone.
  bool begin(Stream& stream, const std::function<bool()>& cancelled = {});
  // begin() by open_behind().
  bool begin_behind(Stream& stream, const KeptText& earlier,
                    const std::function<bool()>& cancelled = {});

  // One pass of the target for all of these streams: no stream twice, none of them finished. A
  // stream whose max_total is reached, or whose commit says so, is finished afterwards.
  RoundTimes round(std::span<const StreamShare> shares, const CommitFunction& on_commit);
  // The same, with drafts as deep as they get, for streams that have nothing to run.
  RoundTimes round(std::span<Stream* const> streams, const CommitFunction& on_commit);

  // Rounds until all of the streams are finished; each is dropped from `streams` when it is.
  // Streams that are finished already take no part.
  void run_to_end(std::vector<Stream*>& streams, const CommitFunction& on_commit,
                  const RoundHooks& hooks = {});

  // A drafter of the round, and where its layers begin among those that the pass leaves behind.
  struct DrafterShare {
    Drafter* drafter;
    int first_layer;
    std::chrono::steady_clock::time_point began = {};  // to draft; nothing where it was not asked
    double seconds = 0;                                // of its drafts
    double learn_seconds = 0;                          // of learning what became of them
  };
  // Of the last round's pass of the target, as ForwardOutput::experts_a_layer.
  double experts_a_layer() const { return output_.experts_a_layer; }
  // Of the last round.
  std::span<const DrafterShare> drafters() const { return drafters_; }
  // Of the last round: what the drafter took for its drafts and for learning what became of them,
  // in seconds; 0 where it drafted none.
  double draft_seconds(const Drafter* drafter) const;

  // Forgets the text in the drafter. Safe to call at any time after open.
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

  // Of the round.
  std::vector<StreamShare> drafted_;  // streams that draft
  std::vector<StreamShare> running_;  // streams that have tokens to run
  std::vector<int> first_logits_;     // of each of drafted_: its root's row among those with logits
  std::vector<int> first_row_;        // likewise, among all rows of the pass
  std::vector<DrafterShare> drafters_;
  std::vector<int> feature_layers_;  // of all drafters, one behind the other
  bool drafts_fit_ = true;           // into the KV cache, whatever is drafted
  bool scratch_fits_ = true;         // and as many scratch nodes as there may be

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
