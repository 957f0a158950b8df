// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/model_drafter.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "model/prefill.h"
#include "model/translated_model.h"
#include "outrider/error.h"
#include "speculate/drafters/retokenized_drafter.h"
#include "speculate/registry/drafter_weights.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

ModelDrafter::ModelDrafter(std::unique_ptr<LanguageModel> model, int target_vocabulary_size,
                           ModelDrafting drafting)
    : LevelwiseDrafter(static_cast<std::size_t>(
          std::min(model->config().vocabulary_size, target_vocabulary_size))),
      model_(std::move(model)),
      drafting_(std::move(drafting)) {}
ModelDrafter::~ModelDrafter() = default;

bool ModelDrafter::can_run(std::span<const TokenId> tokens) const {
  return std::all_of(tokens.begin(), tokens.end(), [this](TokenId token) {
    return static_cast<std::size_t>(token) < n_tokens();
  });
}

void ModelDrafter::begin(const Context& context) {
  const int n_reserved = drafting_.follow ? 0 : context.n_reserved;
  states_[context.id] = {
      .sequence = model_->open({.encoder_tokens = context.encoder_tokens,
                                .n_reserved = n_reserved,
                                .n_tokens = static_cast<int>(context.tokens.size())}),
      .pending = {},
      .length = drafting_.length.first};
  if (context.encoder_tokens.empty() || drafting_.follow) return;
  // Runs now, while the prompt is read. If the cache lacks memory, propose() does not draft.
  Sequence& sequence = *states_[context.id].sequence;
  const SequenceGrowth growth{&sequence, 1};
  if (model_->fits({&growth, 1})) model_->encode(sequence);
}

// The committed tokens that a text's sequence has not run, including the last of the context.
std::span<const TokenId> ModelDrafter::unseen(const Context& context, const State& state) {
  return context.tokens.subspan(state.n_skipped +
                                static_cast<std::size_t>(state.sequence->n_kept()));
}

// How many tokens of the text the next draft skips; a changed number means that the sequence starts
// anew. A sequence that began at the first token is kept if it holds at least as many tokens as are
// missing.
std::size_t ModelDrafter::where_to_begin(const Context& context, const State& state,
                                         bool recent_only) const {
  if (!recent_only) return 0;
  const auto n_kept = static_cast<std::size_t>(state.sequence->n_kept());
  const std::size_t n_missing = unseen(context, state).size();
  const bool is_near = n_kept > 0 && n_missing <= drafting_.n_recent;
  if (is_near || (state.n_skipped == 0 && n_kept >= n_missing)) return state.n_skipped;
  return context.tokens.size() - std::min(context.tokens.size(), drafting_.n_recent);
}

void ModelDrafter::begin_at(State& state, std::size_t n_skipped) {
  if (n_skipped == state.n_skipped) return;
  state.pending.clear();
  state.sequence->keep({});
  state.sequence->rewind(0);
  state.n_skipped = n_skipped;
}

std::size_t ModelDrafter::n_behind(const Context& context) const {
  if (drafting_.follow) return 0;
  const State& state = states_.at(context.id);
  return state.n_skipped > 0 ? context.tokens.size() - 1 : unseen(context, state).size() - 1;
}

std::size_t ModelDrafter::n_behind_recent(const Context& context) const {
  if (drafting_.follow) return 0;
  const State& state = states_.at(context.id);
  const std::size_t n_skipped = where_to_begin(context, state, true);
  return n_skipped == state.n_skipped ? unseen(context, state).size() - 1
                                      : context.tokens.size() - n_skipped - 1;
}

std::optional<double> ModelDrafter::foreseen(const Context& context, std::size_t n_tokens) {
  if (drafting_.follow || !drafting_.prefix_determined) return std::nullopt;
  // Foreseeing is meant to be cheap, and an encoder's run is not.
  if (!context.encoder_tokens.empty()) return std::nullopt;
  const auto tokens = context.tokens.last(std::min(n_tokens, context.tokens.size()));
  if (tokens.size() < 2 || !can_run(tokens)) return std::nullopt;
  const auto n_run = static_cast<int>(tokens.size()) - 1;
  const auto sequence = model_->open({.n_tokens = n_run});
  const SequenceGrowth growth{sequence.get(), n_run};
  if (!model_->fits({&growth, 1})) return std::nullopt;
  blocks_.clear();
  blocks_.begin_block(*sequence);
  for (int row = 0; row < n_run; ++row) {
    blocks_.add(tokens[static_cast<std::size_t>(row)], row - 1);
    blocks_.ask();
  }
  model_->forward(blocks_.blocks(), {.logits = blocks_.rows()}, output());
  count_passes(1);
  double n_foreseen = 0;
  Distribution next;
  for (int row = 0; row < n_run; ++row) {
    context.transform->distribution(output().logits.row(row).first(this->n_tokens()), next);
    n_foreseen += next.prob(tokens[static_cast<std::size_t>(row) + 1]);
  }
  return n_foreseen;
}

void ModelDrafter::prefill(const Context& context, std::span<const TokenId> tokens,
                           const FeatureRows& /*features*/) {
  if (drafting_.follow) return;
  State& state = states_.at(context.id);
  Sequence& sequence = *state.sequence;
  const std::span<const TokenId> missing = unseen(context, state);
  const SequenceGrowth growth{&sequence, static_cast<int>(missing.size())};
  // A prompt gets plain decoding if it exceeds the draft model's context, has unknown tokens, or
  // finds no memory in its cache; propose() finds the same obstacle later. If earlier tokens were
  // skipped, propose() runs the rest.
  state.lags = state.lags || state.n_skipped > 0 || !can_run(context.tokens) ||
               model_->remaining_context(sequence, missing) < 0 || !model_->fits({&growth, 1});
  if (state.lags) return;
  outrider::prefill(*model_, sequence, tokens, output());
}

void ModelDrafter::follow(State& state, const Sequence& judged) const {
  auto sequence = drafting_.follow(judged);
  if (sequence == nullptr) return;
  state.sequence = std::move(sequence);
  state.follows = true;
}

// While the copy exists, the target's next token must copy the page that it is stored in.
void ModelDrafter::leave(State& state) {
  if (!state.follows || state.asks_at_leaves) return;
  state.pending.clear();
  state.sequence->keep({});
  state.sequence->rewind(0);
  state.follows = false;
}

int ModelDrafter::prepare(const DraftJob& job) {
  State& state = states_.at(job.context->id);
  state.asks_at_leaves = job.asks_at_leaves;
  const bool is_asked = job.budget.depth > 0 || job.asks_at_leaves;
  if (drafting_.follow && job.judged != nullptr && is_asked) follow(state, *job.judged);
  if (!drafting_.follow && is_asked) {
    begin_at(state, where_to_begin(*job.context, state, job.recent_only));
  }
  const int depth = room_for(job);
  if (depth <= 0) leave(state);
  return depth;
}

int ModelDrafter::room_for(const DraftJob& job) {
  State& state = states_.at(job.context->id);
  const auto n_tokens = static_cast<int>(job.context->tokens.size());
  const int context = model_->config().context_length;
  const int n_of_sequence = n_tokens - static_cast<int>(state.n_skipped);
  if (n_of_sequence > model_->context_of(*state.sequence) && n_tokens <= context) {
    state.sequence = model_->open({.encoder_tokens = job.context->encoder_tokens,
                                   .n_reserved = job.context->n_reserved,
                                   .n_tokens = n_tokens});
  }
  const std::span<const TokenId> feed = unseen(*job.context, state);
  if (!can_run(feed)) return 0;
  const SequenceGrowth growth{state.sequence.get(),
                              static_cast<int>(feed.size()) + job.budget.n_nodes};
  if (!model_->fits({&growth, 1})) return 0;
  // A tree of depth n runs the context and n - 1 further positions.
  const int room = model_->remaining_context(*state.sequence, feed) + 1;
  return drafting_.length.follows_acceptance ? std::min(room, state.length) : room;
}

void ModelDrafter::catch_up(const Context& context, State& state, std::size_t n_more) {
  const std::span<const TokenId> feed = unseen(context, state);
  constexpr auto kMax = static_cast<std::size_t>(kPrefillRows);
  if (feed.size() + n_more <= kMax) return;
  // The root stays.
  const std::size_t n_before = std::min((feed.size() + n_more - 1) / kMax * kMax, feed.size() - 1);
  outrider::prefill(*model_, *state.sequence, feed.first(n_before), output());
  count_passes(static_cast<std::int64_t>((n_before + kMax - 1) / kMax));
}

// The first level runs the tokens committed since the last draft, up to the root. Every further
// level runs its frontier, after the pending nodes of the levels before.
LevelwiseDrafter::RowPer ModelDrafter::run_level(int level, std::span<const Growing> drafts) {
  if (level == 0) {
    for (const Growing& draft : drafts) {
      catch_up(draft.context(), states_.at(draft.context().id));
    }
  }
  blocks_.clear();
  for (const Growing& draft : drafts) {
    State& state = states_.at(draft.context().id);
    blocks_.begin_block(*state.sequence);
    if (level == 0) {
      blocks_.add_chain(unseen(draft.context(), state));
      blocks_.ask();
    } else {
      blocks_.add_nodes(draft.tree(), draft.frontier(), state.pending);
    }
  }
  model_->forward(blocks_.blocks(), {.logits = blocks_.rows()}, output());
  if (level > 0) return RowPer::node;
  for (std::size_t index = 0; index < drafts.size(); ++index) {
    State& state = states_.at(drafts[index].context().id);
    keep_chain(*state.sequence, static_cast<std::size_t>(blocks_.n_rows_of(index)));
    state.pending.assign(1, -1);  // the root is kept, not pending
    state.lags = false;
  }
  return RowPer::node;
}

void ModelDrafter::complete(const Growing& draft) {
  State& state = states_.at(draft.context().id);
  draft.growth->renumber(state.pending);
  leave(state);
}

bool ModelDrafter::run_node(const Context& context, const DraftTree& tree, int node) {
  State& state = states_.at(context.id);
  std::span<const TokenId> feed = unseen(context, state);
  if (!can_run(feed) || model_->remaining_context(*state.sequence, feed) < tree.node(node).depth)
    return false;
  if (!can_run({&tree.node(node).token, 1})) return false;
  if (node == 0) {
    catch_up(context, state);
    feed = unseen(context, state);
  }
  blocks_.clear();
  blocks_.begin_block(*state.sequence);
  if (node == 0) {  // nothing was drafted
    blocks_.add_chain(feed);
    blocks_.ask();
  } else {  // the draft's beginning has been run; only its last token is missing
    blocks_.add_nodes(tree, {&node, 1}, state.pending);
  }
  model_->forward(blocks_.blocks(), {.logits = blocks_.rows()}, output());
  if (node == 0) keep_chain(*state.sequence, feed.size());
  return true;
}

void ModelDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    State& state = states_.at(result.context->id);
    path_.clear();
    path_.reserve(state.pending.size());  // any of it may be accepted, though seldom all
    for (const int node : result.verdict->path) {
      const auto index = static_cast<std::size_t>(node);
      if (index >= state.pending.size() || state.pending[index] < 0) break;
      path_.push_back(state.pending[index]);
    }
    state.sequence->keep(path_);
    state.pending.clear();
    const int depth = result.tree->depth();
    if (depth == 0) continue;
    const std::span<const int> accepted = result.verdict->path;
    const bool to_its_end = static_cast<int>(accepted.size()) == depth;
    state.length = to_its_end ? state.length + 2 : std::max(state.length - 1, 1);
  }
}

void ModelDrafter::rewind(const Context& context, std::size_t n_common) {
  State& state = states_.at(context.id);
  state.pending.clear();
  state.sequence->keep({});
  // The root is always run again.
  std::size_t n_kept = std::min(n_common, context.tokens.size() - 1);
  if (n_kept <= state.n_skipped) begin_at(state, 0);
  n_kept -= state.n_skipped;
  if (static_cast<std::size_t>(state.sequence->n_kept()) > n_kept) {
    // rewind() may end before n_kept; the next round then runs the tokens between again.
    state.sequence->rewind(static_cast<int>(n_kept));
  }
}

void ModelDrafter::begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) {
  begin(context);
  State& state = states_.at(context.id);
  const State& earlier_state = states_.at(earlier);
  const Sequence& kept = *earlier_state.sequence;
  // With another context length even the first tokens may have other keys
  // (LanguageModel::context_of).
  const bool is_alike = model_->context_of(*state.sequence) == model_->context_of(kept);
  if (!drafting_.follow && is_alike && earlier_state.n_skipped == 0) {
    state.sequence = kept.fork();
    rewind(context, n_run);
  }
  // A few tokens are missing because an earlier text ended after its last draft. More are missing
  // if drafting had stopped earlier: then the next draft runs them.
  constexpr std::size_t kFewMissing = 8;
  const auto n_kept = static_cast<std::size_t>(state.sequence->n_kept());
  if (n_kept + kFewMissing < n_run) {
    state.lags = true;
  } else if (n_kept < n_run) {
    prefill(context, context.tokens.subspan(n_kept, n_run - n_kept), {});
  }
}

void ModelDrafter::end(SequenceId id) { states_.erase(id); }

DrafterPlan read_model_drafter(const Spec& spec) {
  const DrafterWeights weights = DrafterWeights::read(spec);
  const DraftLength length{
      .first = spec.integer("length", 1, kMaxDraftNodes).value_or(kDefaultDraftLength),
      .follows_acceptance =
          spec.choice("schedule", {"constant", "heuristic"}).value_or("constant") == "heuristic"};
  const std::string vocabulary = spec.text("vocabulary").value_or("same");
  if (vocabulary != "same" && vocabulary != "shared" && vocabulary != "text") {
    throw UsageError("read drafter", "vocabulary", "same, shared or text", vocabulary);
  }
  const bool has_draft_prob = vocabulary != "text";
  const auto load = [vocabulary, length, weights](const std::string& path) -> MakeDrafter {
    return [path, vocabulary, length,
            weights](const DrafterMaterials& materials) -> std::unique_ptr<Drafter> {
      const LoadOptions as = weights.options(materials.load);
      if (vocabulary == "same") {
        return std::make_unique<ModelDrafter>(materials.load_model(path, as),
                                              materials.vocabulary_size,
                                              ModelDrafting{.length = length});
      }
      ForeignModel foreign = materials.load_foreign(path, as);
      if (vocabulary == "text") {
        return std::make_unique<RetokenizedDrafter>(
            std::move(foreign.model), std::move(foreign.forth), std::move(foreign.back));
      }
      return std::make_unique<ModelDrafter>(
          std::make_unique<TranslatedModel>(std::move(foreign.model), std::move(foreign.forth)),
          materials.vocabulary_size, ModelDrafting{.prefix_determined = false, .length = length});
    };
  };
  const std::string& path = spec.required_value("model:PATH");
  DrafterPlan plan{
      .traits = {.has_draft_prob = has_draft_prob, .prefix_determined = vocabulary == "same"},
      .shape = chain_shape(length.follows_acceptance ? kMaxDraftNodes : length.first),
      .confidence = spec.number("confidence", 0, 1).value_or(0),
      .make = load(path)};
  if (!spec.text("length") && !length.follows_acceptance) plan.deepest = chain_shape(kDeepestDraft);
  if (!has_draft_prob) plan.variant = "with vocabulary=text";
  if (!has_draft_prob && length.follows_acceptance) {
    throw UsageError("read drafter", "schedule", "constant with vocabulary=text", "heuristic");
  }
  if (!has_draft_prob && plan.confidence > 0) {
    throw UsageError("read drafter", "confidence", "a drafter with distributions to go by",
                     "vocabulary=text");
  }
  if (const auto place = spec.text("updates")) {
    if (place->empty()) throw UsageError("read drafter", "updates", "a directory", "nothing");
    plan.updates = {.place = *place, .in_use = path, .make = load(*place)};
  }
  return plan;
}

}  // namespace outrider
