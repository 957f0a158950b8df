// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/composite/staged_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/prefill.h"
#include "outrider/error.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "speculate/tree_shapes/tree_growth.h"

namespace outrider {
namespace {

// Keys of inner draws. The outer round uses nodes below kOuterNodes; inner round r uses lane r.
// Every inner round adds at least one token, so there are no more of them than a draft may have
// nodes.
constexpr int kOuterNodes = kMaxDraftNodes + 1;
constexpr int kRounds = kMaxDraftNodes + 1;
// Deeper nesting would exceed the 31 bits of a node: 256^4 > 2^31.
constexpr std::size_t kMaxParts = 3;

}  // namespace

StagedDrafter::StagedDrafter(std::string_view name, std::unique_ptr<LanguageModel> model,
                             CompositeDrafter::Part cheaper, std::shared_ptr<const Rule> rule)
    : name_(name),
      model_(std::move(model)),
      cheaper_(std::move(cheaper)),
      rule_(std::move(rule)),
      stop_(nullptr, cheaper_.confidence),
      fresh_(make_traversal(rule_)),  // on chains this is block verification
      coupled_(make_coupled(rule_)),
      decoder_(*model_) {}
StagedDrafter::~StagedDrafter() = default;

bool StagedDrafter::can_run(std::span<const TokenId> tokens) const {
  return std::all_of(tokens.begin(), tokens.end(),
                     [this](TokenId token) { return token < model_->config().vocabulary_size; });
}

void StagedDrafter::begin(const Context& context) {
  State& state = states_[context.id];
  state.stream =
      std::make_unique<Stream>(context.id, context.tokens, *context.transform, state.chance);
  state.stream->history = *context.history;
  state.stream->encoder_tokens.assign(context.encoder_tokens.begin(), context.encoder_tokens.end());
  state.stream->sequence = model_->open({.encoder_tokens = context.encoder_tokens,
                                         .n_tokens = static_cast<int>(context.tokens.size())});
  // If memory lacks, propose() does not draft.
  const SequenceGrowth growth{state.stream->sequence.get(), 1};
  if (!context.encoder_tokens.empty() && model_->fits({&growth, 1})) {
    model_->encode(*state.stream->sequence);
  }
  cheaper_.drafter->begin(state.stream->context());
}

void StagedDrafter::prefill(const Context& context, std::span<const TokenId> tokens,
                            const FeatureRows& /*features*/) {
  Stream& stream = *states_.at(context.id).stream;
  cheaper_.drafter->prefill(stream.context(), tokens, {});
  // A prompt beyond the model's context, or with unknown tokens, is skipped: propose() finds the
  // same obstacle.
  if (static_cast<int>(context.tokens.size()) > model_->config().context_length) return;
  if (!can_run(context.tokens.first(context.tokens.size() - 1))) return;
  outrider::prefill(*model_, *stream.sequence, tokens, output_);
}

// Runs the text as far as the model has not seen it, except the last token, which is the next
// round's root.
void StagedDrafter::catch_up(Stream& stream) {
  std::span<const TokenId> missing(stream.tokens);
  missing = missing.first(missing.size() - 1)
                .subspan(static_cast<std::size_t>(stream.sequence->n_kept()));
  while (!missing.empty()) {
    const auto step = missing.first(std::min<std::size_t>(missing.size(), kPrefillRows));
    outrider::prefill(*model_, *stream.sequence, step, output_);
    ++n_passes_;
    missing = missing.subspan(step.size());
  }
  stream.n_run = stream.tokens.size() - 1;
}

void StagedDrafter::propose(std::span<DraftJob> jobs) {
  drafting_.clear();
  for (DraftJob& job : jobs) {
    State& state = states_.at(job.context->id);
    Stream& stream = *state.stream;
    const auto n_tokens = static_cast<std::int64_t>(stream.tokens.size());
    const std::int64_t room = model_->config().context_length - n_tokens + 1;
    const std::int64_t length =
        std::min<std::int64_t>({job.budget.depth, job.budget.n_nodes, room});
    if (length <= 0 || !can_run(stream.tokens)) continue;
    stream.drafting = {
        .drafter = cheaper_.drafter.get(),
        .acceptance = job.noise == DraftNoise::coupled ? coupled_.get() : fresh_.get(),
        .shape = cheaper_.shape,
        .stop = &stop_};
    stream.max_total = n_tokens + length;
    stream.finished = false;
    stream.counts = {};
    catch_up(stream);
    state.job = &job;
    state.leaf = 0;
    state.n_rounds = 0;
    drafting_.push_back(&stream);
  }
  RoundHooks hooks;
  hooks.before = [this](std::span<Stream* const> streams) {
    for (const Stream* stream : streams) {
      State& state = states_.at(stream->id);
      state.chance.reset(*state.job->chance, {.first = kOuterNodes,
                                              .stride = kRounds,
                                              .lane = state.n_rounds++,
                                              .position = state.job->tree->n_committed()});
    }
  };
  hooks.after = [this](std::span<Stream* const>, const RoundTimes&) { ++n_passes_; };
  const CommitFunction on_commit = [this](Stream& stream, const Committed& committed) {
    return commit(states_.at(stream.id), committed);
  };
  decoder_.run_to_end(drafting_, on_commit, hooks);
}

// A token's proposal distribution is the rule's at the node before it: with the exact rule, that of
// the model's row.
bool StagedDrafter::commit(State& state, const Committed& committed) const {
  Stream& stream = *state.stream;
  DraftTree& tree = *state.job->tree;
  const int dist = tree.add_distribution();
  rule_->rule_prob(stream.views, committed.logits_node, tree.distribution(dist));
  tree.set_draft_prob(state.leaf, dist);
  const Distribution& raw = stream.views.raw_target(committed.logits_node);
  if (state.job->record_raw) {
    const int raw_dist = tree.add_distribution();
    tree.distribution(raw_dist) = raw;
    tree.set_raw_draft(state.leaf, raw_dist);
  }
  // At temperature 0 the distribution is a point mass already, and naming the token means the same.
  state.leaf = tree.add_child(state.leaf, committed.id, dist);
  const auto at = std::find(raw.ids.begin(), raw.ids.end(), committed.id);
  const double raw_prob =
      at == raw.ids.end() ? 0 : raw.probs[static_cast<std::size_t>(at - raw.ids.begin())];
  const StopRule* const stop = state.job->stop;
  return stop != nullptr && stop->stop_after(committed.id, raw_prob);
}

bool StagedDrafter::draft_at(const Context& context, const DraftTree& tree, int node,
                             Distribution& draft_prob, Distribution* raw_draft) {
  Stream& stream = *states_.at(context.id).stream;
  const std::size_t n_tokens =
      context.tokens.size() + static_cast<std::size_t>(tree.node(node).depth);
  if (static_cast<std::int64_t>(n_tokens) > model_->config().context_length) return false;
  // A draft is a chain, and the distribution after its end was asked for.
  stream.tokens.resize(n_tokens);
  if (!can_run(stream.tokens)) return false;
  stream.sequence->rewind(std::min(stream.sequence->n_kept(), static_cast<int>(n_tokens) - 1));
  catch_up(stream);
  const TokenBlock block{
      .sequence = stream.sequence.get(), .tokens = {&stream.tokens.back(), 1}, .parents = {}};
  model_->forward({&block, 1}, {.logits = {.kind = RowSet::Kind::all, .rows = {}}}, output_);
  ++n_passes_;
  const int path[] = {0};
  stream.sequence->keep(path);
  // A round with a root alone and no verification.
  stream.tree.reset(stream.tokens.back(), static_cast<std::int64_t>(n_tokens));
  stream.views.reset(stream.tree, output_, 0, stream.tokens, 0);
  const RuleNeeds needs = rule_->needs();
  const Context inner = stream.context();
  if (needs.leaf_draft) stream.views.ask_at_leaves(*cheaper_.drafter, inner, needs.raw_draft);
  rule_->rule_prob(stream.views, 0, draft_prob);
  if (raw_draft != nullptr) *raw_draft = stream.views.raw_target(0);
  return true;
}

void StagedDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    const std::vector<TokenId>& drafted = states_.at(result.context->id).stream->tokens;
    const std::span<const TokenId> tokens = result.context->tokens;
    auto n_common = static_cast<std::size_t>(result.tree->n_committed());
    while (n_common < std::min(drafted.size(), tokens.size()) &&
           drafted[n_common] == tokens[n_common]) {
      ++n_common;
    }
    rewind(*result.context, n_common);
  }
}

void StagedDrafter::rewind(const Context& context, std::size_t n_common) {
  Stream& stream = *states_.at(context.id).stream;
  stream.tokens.resize(n_common);
  stream.tokens.insert(stream.tokens.end(),
                       context.tokens.begin() + static_cast<std::ptrdiff_t>(n_common),
                       context.tokens.end());
  stream.history = *context.history;
  const auto n_kept = static_cast<int>(std::min(n_common, context.tokens.size() - 1));
  stream.sequence->rewind(std::min(stream.sequence->n_kept(), n_kept));
  cheaper_.drafter->rewind(stream.context(), n_common);
}

void StagedDrafter::end(SequenceId id) {
  cheaper_.drafter->end(id);
  states_.erase(id);
}

StagedModel read_staged_model(const std::string& part, std::string_view drafter, const char* form) {
  const Spec spec = Spec::parse("drafter", part);
  if (spec.name() != "model") {
    throw UsageError("read drafter", drafter, form, fmt::format("{} before the last", spec.name()));
  }
  spec.require_keys({"confidence", DrafterWeights::kKey});
  return {.path = spec.required_value(form),
          .weights = DrafterWeights::read(spec),
          .confidence = spec.number("confidence", 0, 1).value_or(0)};
}

DrafterPlan plan_staged(const StagedModel& model, const DrafterPlan& cheaper, std::string_view name,
                        std::shared_ptr<const Rule> rule) {
  return {.traits = {.has_draft_prob = true, .prefix_determined = true},
          .shape = chain_shape(kDefaultDraftLength),
          .confidence = model.confidence,
          .make = [path = model.path, weights = model.weights, cheaper, name,
                   rule = std::move(rule)](const DrafterMaterials& materials) {
            auto loaded = materials.load_model(path, weights.options(materials.load));
            if (loaded->config().vocabulary_size > materials.vocabulary_size) {
              throw Error("load drafter", path,
                          fmt::format("at most the target's {} tokens for {} drafting",
                                      materials.vocabulary_size, name),
                          fmt::format("{}", loaded->config().vocabulary_size));
            }
            return std::make_unique<StagedDrafter>(
                name, std::move(loaded),
                CompositeDrafter::Part{cheaper.make(materials), cheaper.shape, cheaper.confidence},
                rule);
          }};
}

DrafterPlan read_staged_drafter(std::span<const std::string> parts) {
  constexpr const char* kForm = "staged:model:PATH+B";
  const auto refuse = [](std::string expected, std::string got) {
    return UsageError("read drafter", "staged", std::move(expected), std::move(got));
  };
  if (parts.size() < 2)
    throw refuse(fmt::format("{}, two or more parts", kForm),
                 parts.empty() ? "none" : parts.front());
  if (parts.size() > kMaxParts) {
    throw refuse(fmt::format("at most {} parts", kMaxParts), fmt::format("{}", parts.size()));
  }
  const StagedModel model = read_staged_model(parts.front(), "staged", kForm);
  const DrafterPlan cheaper =
      parts.size() == 2 ? read_drafter(parts.back()) : read_staged_drafter(parts.subspan(1));
  refuse_updates(cheaper, "staged");
  if (cheaper.traits.reads_features) {
    throw refuse("a cheaper drafter that reads no features of the target", parts.back());
  }
  return plan_staged(model, cheaper, "staged", std::make_shared<ExactRule>());
}

}  // namespace outrider
