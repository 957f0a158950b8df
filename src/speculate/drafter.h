// SPDX-License-Identifier: Apache-2.0
// The interface of all drafters: they propose tokens.
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
#include "speculate/acceptances/acceptance.h"
#include "speculate/draft_choice.h"
#include "speculate/draft_tree.h"
#include "speculate/draft_worth.h"
#include "speculate/tree_shapes/tree_shape.h"

namespace outrider {

using SequenceId = std::int64_t;

// One text as a drafter sees it. Its pointers outlive the call.
struct Context {
  SequenceId id = 0;
  std::span<const TokenId> tokens;        // prompt and all committed tokens; never empty
  const TokenHistory* history = nullptr;  // the same, as penalties count them
  const Transform* transform = nullptr;   // the request's sampling transform
  // The number of tokens, drafted ones included, for which lists that grow with the text may
  // reserve memory at the beginning (0: unknown).
  int n_reserved = 0;
  // For an encoder-decoder: the encoder's input (Prompt).
  std::span<const TokenId> encoder_tokens = {};
};

// Limits of this round's draft, whatever the shape asks for.
struct Budget {
  int depth = 0;    // of the deepest drafted node: what the context and the token limit leave
  int n_nodes = 0;  // drafted tokens without the root
  // Limit for the deepest scratch node: what the context leaves. Drafted and scratch nodes together
  // are at most kMaxDraftNodes (tree_shape.h).
  int scratch_depth = 0;
};

// Ends a draft early. Called after each drafted token. That token stays in the tree, without
// children: stopping because of a token's value is exact only if the token is still judged.
// raw_prob is the token's probability before temperature and truncation, because at temperature 0
// or top-k 1 every token has probability 1 after them.
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
  DraftWorth* worth = nullptr;       // for drafters with rates_tokens(); null: draft all that fits
  DraftChoice* choice = nullptr;     // for drafters with choices(); null: the first draft
  Chance* chance = nullptr;
  DraftNoise noise = DraftNoise::fresh;
  bool record_raw = false;    // set raw_draft wherever draft_prob is set (RuleNeeds::raw_draft)
  DraftTree* tree = nullptr;  // reset to the root by the caller; propose() adds to it
  // The target's sequence with the keys and values of all tokens of the context but the last, for
  // drafters that can use them (LanguageModel::fork_without); null: not available.
  const Sequence* judged = nullptr;
  bool asks_at_leaves = true;  // draft_at() may follow (RuleNeeds::leaf_draft)
  // A drafter with catches_up() that has run none of the text may run its last tokens only
  // (Drafter::n_behind_recent). Not set for rules that use the drafter's distributions, which would
  // then depend on where it began.
  bool recent_only = false;
};

// Hidden states of the target at some tokens: those of feature_layers() side by side, possibly
// among other drafters' columns. Valid for the call only.
struct FeatureRows {
  std::span<const float> values = {};  // (n_rows, stride)
  int stride = 0;                      // 0: no features
  int first = 0;                       // this drafter's first column
  int width = 0;                       // feature_layers().size() * the target's dim

  int n_rows() const { return stride == 0 ? 0 : static_cast<int>(values.size()) / stride; }
  std::span<const float> row(int index) const {
    return values.subspan(static_cast<std::size_t>(index) * static_cast<std::size_t>(stride) +
                              static_cast<std::size_t>(first),
                          static_cast<std::size_t>(width));
  }
};

// The result of a draft, once the context holds the new tokens. Its pointers are valid for the
// call.
struct RoundResult {
  const Context* context = nullptr;
  const DraftTree* tree = nullptr;
  const Verdict* verdict = nullptr;
  // At the root and the accepted tokens, in the order of the text, whichever draft they came from.
  FeatureRows features = {};
  // The target's pass over this tree and those of other texts, and the root's row in it. The other
  // nodes' rows follow; `rows` lists them if the tree is a part of the tree that was run.
  const ForwardOutput* target = nullptr;
  int first_row = 0;
  std::span<const int> rows = {};  // (n_nodes), or empty

  // The target's logits (vocabulary) of the token after a node, before bias and penalties. Valid
  // for the root and all drafted and scratch nodes, accepted or not.
  LogitRow target_logits(int node) const {
    return target->logits.row(rows.empty() ? first_row + node
                                           : rows[static_cast<std::size_t>(node)]);
  }
};

struct DrafterTraits {
  bool has_draft_prob = false;  // its proposals come from distributions that it can show
  // These depend on the prefix alone, not on where a round began (except with
  // DraftJob::recent_only).
  bool prefix_determined = false;
  bool reads_features = false;  // of the target: it has feature_layers()
  // The cost of a further level of a draft relative to the first. 1: a pass like it; 0: almost
  // nothing, since one pass gives all levels.
  double further_level = 1;
};

// Drafts for several sequences at once. Keeps state for each sequence from begin() to end(). Not
// thread-safe.
class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual std::string_view name() const = 0;
  virtual DrafterTraits traits() const = 0;
  // The hidden states of the target that the drafter reads (ForwardRequest::feature_layers),
  // constant: every pass of the target leaves them for it. Empty: none.
  virtual std::span<const int> feature_layers() const { return {}; }

  // Whether its keys and values are in the target's KV cache. It may then take as much as the
  // target for each text, and one page more.
  virtual bool uses_target_cache() const { return false; }

  // Drafters of which one drafts a round, chosen by DraftJob::choice if given. Valid as long as
  // this drafter.
  struct Option {
    Drafter* drafter;
    const TreeShape* shape;  // of its drafts
    std::string spec;
  };
  virtual std::span<const Option> choices() const { return {}; }
  // Whether it drafts by DraftJob::worth, if given.
  virtual bool rates_tokens() const { return false; }

  // Whether propose() runs tokens of a text that prefill() has not shown: all of them or, with
  // DraftJob::recent_only, the last ones. A text without drafts then costs nothing
  // (Stream::defers_drafter).
  virtual bool catches_up() const { return false; }
  // Tokens of the context, without the last, that propose() would run before it drafts.
  virtual std::size_t n_behind(const Context& /*context*/) const { return 0; }
  // The same with DraftJob::recent_only: at most n_behind().
  virtual std::size_t n_behind_recent(const Context& context) const { return n_behind(context); }
  // A cheap estimate for a text that it does not draft for. The last n_tokens of the context are
  // taken as a text of their own; returns how many of them, without the first, it would have
  // drafted correctly. If tokens are drawn, returns the expected number. It keeps no state of the
  // text. Empty: it cannot say.
  virtual std::optional<double> foreseen(const Context& /*context*/, std::size_t /*n_tokens*/) {
    return std::nullopt;
  }

  // A text begins; its context is the prompt.
  virtual void begin(const Context& context) = 0;
  // An earlier text, begun and not ended, shares its first n_common tokens with a new one. Returns
  // how many of these prefill() need not show again. By default all, or 0 if the drafter reads
  // features.
  virtual std::size_t reusable(SequenceId earlier, std::size_t n_common) const;
  // begin() for such a text. The state of its first n_run tokens, at most reusable(), is taken over
  // from the earlier text, which is unchanged; prefill() is called for the tokens after them. By
  // default they are run again, all at once.
  virtual void begin_behind(const Context& context, SequenceId earlier, std::size_t n_run);
  // The target has run these next tokens of the prompt. Called after begin() until all tokens but
  // the last (the root of the first round) have been run, or until the text is cancelled. features:
  // the target's at these tokens, if the drafter reads any; none after rewind(). A drafter without
  // a model ignores this.
  virtual void prefill(const Context& /*context*/, std::span<const TokenId> /*tokens*/,
                       const FeatureRows& /*features*/) {}
  // Adds nodes to each job's tree; adding none is always allowed (nothing to propose, context
  // full).
  virtual void propose(std::span<DraftJob> jobs) = 0;
  // The drafter's distributions at a node without them, where verification has ended a draft and
  // its rule draws the next token from both models. Called between propose() and observe(), for at
  // most one node of a text. It costs a step of the drafter, whose result observe() and the next
  // propose() reuse. Returns false, and writes nothing, if the drafter cannot give them. raw_draft
  // may be null.
  virtual bool draft_at(const Context& context, const DraftTree& tree, int node,
                        Distribution& draft_prob, Distribution* raw_draft);
  virtual void observe(std::span<const RoundResult> results) = 0;
  virtual void end(SequenceId id) = 0;
  // Takes back tokens: the text is now context.tokens, of which the first n_common are unchanged.
  // Called between observe() and the next propose(), for drafters that draft for another drafter.
  // By default the text begins anew. Not for drafters that read features.
  virtual void rewind(const Context& context, std::size_t n_common);
  // An error of a text in the program's code (own_drafter.h), which must end the text. Null: none.
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
