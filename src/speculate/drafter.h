// A drafter: anything that proposes tokens.
#ifndef OUTRIDER_SPECULATE_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string_view>

#include "model/language_model.h"
#include "outrider/types.h"
#include "sampling/chance.h"
#include "sampling/transform.h"
#include "speculate/acceptance.h"
#include "speculate/draft_choice.h"
#include "speculate/draft_tree.h"
#include "speculate/draft_worth.h"
#include "speculate/tree_shape.h"

namespace outrider {

using SequenceId = std::int64_t;

// One text as a drafter sees it. What it points to outlives the call it is given to.
struct Context {
  SequenceId id = 0;
  std::span<const TokenId> tokens;        // prompt and all committed tokens; never empty
  const TokenHistory* history = nullptr;  // the same, as penalties count them
  const Transform* transform = nullptr;   // the request's sampling transform
  // How many tokens, drafted ones included, lists that grow with the text may get room for when it
  // begins (0: nothing is known).
  int n_reserved = 0;
  // Of an encoder-decoder: what its encoder read (Prompt).
  std::span<const TokenId> encoder_tokens = {};
};

// How much to draft this time at most, whatever the shape asks for.
struct Budget {
  int depth = 0;    // of the deepest drafted node: what the context and the token limit leave
  int n_nodes = 0;  // drafted tokens, the root left out
  // Of the deepest scratch node: what the context leaves. Drafted and scratch nodes together are
  // no more than kMostDraftNodes (tree_shape.h).
  int scratch_depth = 0;
};

// Ends a draft early. Called after each drafted token, which stays in the tree, without children:
// stopping because of a token's value is exact only if that token is still judged. raw_prob is the
// token's probability before temperature and truncation: at temperature 0 and top-k 1 every draft
// is certain of itself behind them.
class StopRule {
 public:
  virtual ~StopRule() = default;
  virtual bool stop_after(TokenId token, double raw_prob) const = 0;
};

struct DraftJob {
  const Context* context = nullptr;
  Budget budget;
  const TreeShape* shape = nullptr;  // never null
  const StopRule* stop = nullptr;    // may be null
  DraftWorth* worth = nullptr;       // for drafters that rates_tokens(); null: all that fits
  DraftChoice* choice = nullptr;     // for drafters that have choices(); null: the first draft
  Chance* chance = nullptr;
  DraftNoise noise = DraftNoise::fresh;
  bool record_raw = false;    // set raw_draft wherever draft_prob is set (RuleNeeds::raw_draft)
  DraftTree* tree = nullptr;  // reset to the root by the caller; propose() adds to it
  // The keys and values of the model that is drafted for, of all tokens of the context but the
  // last, for drafters that can use them (LanguageModel::fork_without); null: not to be had.
  const Sequence* judged = nullptr;
  bool asks_at_leaves = true;  // draft_at() may follow (RuleNeeds::leaf_draft)
  // The text's last tokens are enough where a drafter that catches_up() has run none of it
  // (Drafter::n_behind_recent). Not for rules that look at its distributions, which then depend on
  // where it began.
  bool recent_only = false;
};

// The target's hidden states at some tokens: those that the drafter asked for by feature_layers(),
// side by side, perhaps among others' that it did not. Valid for the call it is given to.
struct FeatureRows {
  std::span<const float> values = {};  // (n_rows, stride)
  int stride = 0;                      // 0: no features
  int first = 0;                       // column of the drafter's own
  int width = 0;                       // feature_layers().size() * the target's dim

  int n_rows() const { return stride == 0 ? 0 : static_cast<int>(values.size()) / stride; }
  std::span<const float> row(int index) const {
    return values.subspan(static_cast<std::size_t>(index) * static_cast<std::size_t>(stride) +
                              static_cast<std::size_t>(first),
                          static_cast<std::size_t>(width));
  }
};

// What became of a draft, once the context holds the new tokens. What it points to stays valid for
// the call it is given to.
struct RoundResult {
  const Context* context = nullptr;
  const DraftTree* tree = nullptr;
  const Verdict* verdict = nullptr;
  // At the root and the accepted tokens, in the order of the text, whichever draft they came from.
  FeatureRows features = {};
  // The target's pass over this tree and those of other texts, and the root's row in it; the other
  // nodes' rows follow, or are listed where the tree is a part of one that was run.
  const ForwardOutput* target = nullptr;
  int first_row = 0;
  std::span<const int> rows = {};  // (n_nodes), or empty

  // What the target says follows a node, drafted, scratch or the root, accepted or not:
  // (vocabulary) logits, before bias and penalties.
  LogitRow target_logits(int node) const {
    return target->logits.row(rows.empty() ? first_row + node
                                           : rows[static_cast<std::size_t>(node)]);
  }
};

struct DrafterTraits {
  bool has_draft_prob = false;  // its proposals come from distributions it can show
  // And these depend on the prefix alone, not on where a round began (but for
  // DraftJob::recent_only).
  bool prefix_determined = false;
  bool reads_features = false;  // of the target: it has feature_layers()
  // What a further level of a draft takes, in what the first one does: 1, a pass like it; 0, next
  // to nothing, since one pass gives all levels.
  double further_level = 1;
};

// Drafts for several sequences at once. Keeps state per sequence from begin() to end(). Not
// thread-safe.
class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual std::string_view name() const = 0;
  virtual DrafterTraits traits() const = 0;
  // The hidden states of the target that the drafter reads (ForwardRequest::feature_layers), always
  // the same: every pass of the target leaves them behind for it. Empty: none.
  virtual std::span<const int> feature_layers() const { return {}; }

  // Whether its keys and values lie in the target's KV cache: it may take as much again there as
  // the target does, and a page more, for each text.
  virtual bool uses_target_cache() const { return false; }

  // Drafters of which one drafts a round, by DraftJob::choice where that is given. Valid as long as
  // this one.
  struct Option {
    Drafter* drafter;
    const TreeShape* shape;  // of its drafts
    std::string spec;
  };
  virtual std::span<const Option> choices() const { return {}; }
  // Whether it drafts by DraftJob::worth, where that is given.
  virtual bool rates_tokens() const { return false; }

  // Whether propose() runs by itself what prefill() has not shown it of a text, all of it or, with
  // DraftJob::recent_only, its last tokens: a text that is not drafted for, for now, costs nothing
  // then (Stream::defers_drafter).
  virtual bool catches_up() const { return false; }
  // Tokens of the context, but the last, that propose() would run before it drafts.
  virtual std::size_t n_behind(const Context& /*context*/) const { return 0; }
  // Likewise with DraftJob::recent_only: at most n_behind().
  virtual std::size_t n_behind_recent(const Context& context) const { return n_behind(context); }
  // Of the last n_tokens of the context, which stand for a text of their own: how many, behind the
  // first, it would have drafted there; where tokens are drawn, how many it may expect to have. A
  // cheap look at what it is good for, of a text that it does not draft for and of which it knows
  // nothing afterwards. None: it cannot say.
  virtual std::optional<double> foreseen(const Context& /*context*/, std::size_t /*n_tokens*/) {
    return std::nullopt;
  }

  // A text begins; its context is the prompt.
  virtual void begin(const Context& context) = 0;
  // Of n_common tokens that a text begins with and that an earlier one, which has begun and not
  // ended, began with as well: how many need not be shown again by prefill(). By default all,
  // unless the drafter reads features.
  virtual std::size_t reusable(SequenceId earlier, std::size_t n_common) const;
  // begin() for such a text: the first n_run tokens, at most as many as reusable() said, are taken
  // over from the earlier text, which stays as it is, and prefill() is called for those behind
  // them. By default they are run anew, all at once.
  virtual void begin_behind(const Context& context, SequenceId earlier, std::size_t n_run);
  // The target has run these next tokens of the prompt: called after begin() until all of them but
  // the last, which roots the first round, have been run, or until the text is cancelled. features:
  // the target's at these tokens, if the drafter reads any; none after rewind(). A drafter without
  // a model has nothing to do.
  virtual void prefill(const Context& /*context*/, std::span<const TokenId> /*tokens*/,
                       const FeatureRows& /*features*/) {}
  // Adds to each job's tree; adding nothing is always allowed (nothing to propose, context full).
  virtual void propose(std::span<DraftJob> jobs) = 0;
  // The drafter's distributions at a node that propose() left without: verification has ended a
  // draft there and its rule draws the next token from both models. Asked between propose() and
  // observe(), for one node of a text at most; it costs a step of the drafter, which observe() and
  // the next propose() profit from. false, and nothing written, where there are none to be had.
  // raw_draft may be null.
  virtual bool draft_at(const Context& context, const DraftTree& tree, int node,
                        Distribution& draft_prob, Distribution* raw_draft);
  virtual void observe(std::span<const RoundResult> results) = 0;
  virtual void end(SequenceId id) = 0;
  // Tokens that the text was thought to have are taken back: it is now context.tokens, of which the
  // first n_common stand as before. Between observe() and the next propose(), for drafters that
  // draft for another drafter; by default the text begins anew. Not for those that read features.
  virtual void rewind(const Context& context, std::size_t n_common);
  // What went wrong with a text in code of the program's (own_drafter.h): the text has to end by
  // it. Null: nothing.
  virtual std::exception_ptr failure(SequenceId /*id*/) const { return nullptr; }

  // Forward passes of a model so far (0 for index drafters).
  virtual std::int64_t n_passes() const = 0;
};

inline bool Drafter::draft_at(const Context&, const DraftTree&, int, Distribution&, Distribution*) {
  return false;
}

inline std::size_t Drafter::reusable(SequenceId /*earlier*/, std::size_t n_common) const {
  return traits().reads_features ? 0 : n_common;
}

inline void Drafter::begin_behind(const Context& context, SequenceId /*earlier*/,
                                  std::size_t n_run) {
  begin(context);
  if (n_run > 0) prefill(context, context.tokens.first(n_run), {});
}

inline void Drafter::rewind(const Context& context, std::size_t /*n_common*/) {
  end(context.id);
  begin(context);
  prefill(context, context.tokens.first(context.tokens.size() - 1), {});
}

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTER_H_
