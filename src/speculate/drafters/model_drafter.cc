#include "speculate/drafters/model_drafter.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "model/prefill.h"
#include "model/translated_model.h"
#include "outrider/error.h"
#include "speculate/drafter_weights.h"
#include "speculate/drafters/retokenized_drafter.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

struct ModelDrafter::Growing {
  DraftJob* job = nullptr;
  Text* text = nullptr;
  TreeGrowth* growth = nullptr;
  std::span<const TokenId> feed;  // committed tokens that the model has not seen, the root last
};

ModelDrafter::ModelDrafter(std::unique_ptr<LanguageModel> model, int target_vocabulary_size,
                           ModelDrafting drafting)
    : model_(std::move(model)),
      drafting_(std::move(drafting)),
      shared_vocabulary_(static_cast<std::size_t>(
          std::min(model_->config().vocabulary_size, target_vocabulary_size))) {}
ModelDrafter::~ModelDrafter() = default;

bool ModelDrafter::can_run(std::span<const TokenId> tokens) const {
  return std::all_of(tokens.begin(), tokens.end(), [this](TokenId token) {
    return static_cast<std::size_t>(token) < shared_vocabulary_;
  });
}

void ModelDrafter::begin(const Context& context) {
  const int n_reserved = drafting_.follow ? 0 : context.n_reserved;
  texts_[context.id] = {.sequence = model_->open({.encoder_tokens = {}, .n_reserved = n_reserved}),
                        .pending = {},
                        .length = drafting_.length.first};
}

void ModelDrafter::prefill(const Context& context, std::span<const TokenId> tokens,
                           const FeatureRows& /*features*/) {
  // A prompt beyond the draft model's context, or with tokens it does not know, is left to plain
  // decoding: propose() finds the same obstacle in what is not cached.
  if (drafting_.follow || !can_run(context.tokens)) return;
  Sequence& sequence = *texts_.at(context.id).sequence;
  const auto n_cached = static_cast<std::size_t>(sequence.n_kept());
  if (model_->room(sequence, context.tokens.subspan(n_cached)) < 0) return;
  outrider::prefill(*model_, sequence, tokens, output_);
}

void ModelDrafter::propose(std::span<DraftJob> jobs) {
  growing_.clear();
  while (growths_.size() < jobs.size()) growths_.push_back(std::make_unique<TreeGrowth>());
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    DraftJob& job = jobs[index];
    Text& text = texts_.at(job.context->id);
    if (drafting_.follow && job.judged != nullptr) {
      if (auto sequence = drafting_.follow(*job.judged)) text.sequence = std::move(sequence);
    }
    const auto n_cached = static_cast<std::size_t>(text.sequence->n_kept());
    auto feed = job.context->tokens.subspan(n_cached);
    if (!can_run(feed)) continue;
    // A tree of depth n runs the context and n - 1 further positions.
    int room = model_->room(*text.sequence, feed) + 1;
    if (drafting_.length.follows_acceptance) room = std::min(room, text.length);
    if (room <= 0) continue;
    TreeGrowth& growth = *growths_[index];
    growth.start(job, room);
    if (growth.frontier().empty()) continue;
    catch_up(*text.sequence, feed);
    growing_.push_back({.job = &job, .text = &text, .growth = &growth, .feed = feed});
  }
  if (growing_.empty()) return;
  run_contexts();
  drop_complete();
  while (!growing_.empty()) {
    run_frontiers();
    drop_complete();
  }
}

// No pass is wider than one of prefill: what is missing of a long text is run before.
void ModelDrafter::catch_up(Sequence& sequence, std::span<const TokenId>& feed) {
  if (feed.size() <= static_cast<std::size_t>(kPrefillRows)) return;
  const std::size_t n_before = (feed.size() - 1) / kPrefillRows * kPrefillRows;
  outrider::prefill(*model_, sequence, feed.first(n_before), output_);
  n_passes_ += static_cast<std::int64_t>(n_before / kPrefillRows);
  feed = feed.subspan(n_before);
}

// The first level: what was committed since the last draft, up to the root.
void ModelDrafter::run_contexts() {
  blocks_.clear();
  for (const Growing& growing : growing_) {
    blocks_.push_back(
        {.sequence = growing.text->sequence.get(), .tokens = growing.feed, .parents = {}});
  }
  model_->forward(blocks_, {.logits = {.kind = RowSet::Kind::last_of_each_block, .rows = {}}},
                  output_);
  ++n_passes_;
  for (std::size_t index = 0; index < growing_.size(); ++index) {
    const Growing& growing = growing_[index];
    path_.resize(growing.feed.size());
    std::iota(path_.begin(), path_.end(), 0);
    growing.text->sequence->keep(path_);
    growing.growth->expand(0,
                           output_.logits_row(static_cast<int>(index)).first(shared_vocabulary_));
    growing.growth->next_level();
    growing.text->pending.assign(1, -1);  // the root is kept, not pending
  }
}

// Every further level, behind the pending nodes of the levels before.
void ModelDrafter::run_frontiers() {
  std::size_t n_rows = 0;
  for (const Growing& growing : growing_) n_rows += growing.growth->frontier().size();
  block_tokens_.clear();
  block_parents_.clear();
  block_tokens_.reserve(n_rows);  // the blocks below point into these
  block_parents_.reserve(n_rows);
  blocks_.clear();
  for (const Growing& growing : growing_) {
    const DraftTree& tree = *growing.job->tree;
    std::vector<int>& pending = growing.text->pending;
    pending.resize(static_cast<std::size_t>(tree.n_nodes()), -1);
    const std::span<const int> frontier = growing.growth->frontier();
    const std::size_t first = block_tokens_.size();
    int next = growing.text->sequence->n_pending();
    for (const int node : frontier) {
      block_tokens_.push_back(tree.node(node).token);
      block_parents_.push_back(pending[static_cast<std::size_t>(tree.node(node).parent)]);
      pending[static_cast<std::size_t>(node)] = next++;
    }
    blocks_.push_back({.sequence = growing.text->sequence.get(),
                       .tokens = {block_tokens_.data() + first, frontier.size()},
                       .parents = {block_parents_.data() + first, frontier.size()}});
  }
  model_->forward(blocks_, {.logits = {.kind = RowSet::Kind::all, .rows = {}}}, output_);
  ++n_passes_;
  int row = 0;
  for (const Growing& growing : growing_) {
    for (const int node : growing.growth->frontier()) {
      growing.growth->expand(node, output_.logits_row(row++).first(shared_vocabulary_));
    }
    growing.growth->next_level();
  }
}

void ModelDrafter::drop_complete() {
  std::erase_if(growing_, [](const Growing& growing) {
    if (!growing.growth->frontier().empty()) return false;
    growing.growth->renumber(growing.text->pending);
    return true;
  });
}

bool ModelDrafter::draft_at(const Context& context, const DraftTree& tree, int node,
                            Distribution& draft_prob, Distribution* raw_draft) {
  Text& text = texts_.at(context.id);
  const auto n_cached = static_cast<std::size_t>(text.sequence->n_kept());
  const std::span<const TokenId> feed = context.tokens.subspan(n_cached);
  if (!can_run(feed) || model_->room(*text.sequence, feed) < tree.node(node).depth) return false;
  TokenBlock block{.sequence = text.sequence.get(), .tokens = feed, .parents = {}};
  const TokenId token = tree.node(node).token;
  int parent = -1;
  if (node > 0) {
    // The draft's beginning has been run; what is missing is its last token.
    parent = text.pending[static_cast<std::size_t>(tree.node(node).parent)];
    block.tokens = {&token, 1};
    block.parents = {&parent, 1};
  }
  if (!can_run(block.tokens)) return false;
  if (node > 0) {
    text.pending.resize(static_cast<std::size_t>(tree.n_nodes()), -1);
    text.pending[static_cast<std::size_t>(node)] = text.sequence->n_pending();
  }
  model_->forward({&block, 1}, {.logits = {.kind = RowSet::Kind::last_of_each_block, .rows = {}}},
                  output_);
  ++n_passes_;
  if (node == 0) {  // nothing was drafted
    path_.resize(feed.size());
    std::iota(path_.begin(), path_.end(), 0);
    text.sequence->keep(path_);
  }
  distributions_at(context, tree, node, output_.logits_row(0).first(shared_vocabulary_), penalised_,
                   draft_prob, raw_draft);
  return true;
}

void ModelDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    Text& text = texts_.at(result.context->id);
    path_.clear();
    path_.reserve(text.pending.size());  // any of it may be accepted, if seldom all
    for (const int node : result.verdict->path) {
      const auto index = static_cast<std::size_t>(node);
      if (index >= text.pending.size() || text.pending[index] < 0) break;
      path_.push_back(text.pending[index]);
    }
    text.sequence->keep(path_);
    text.pending.clear();
    const int n_drafted = result.tree->n_drafted();
    if (n_drafted == 0) continue;
    const std::span<const int> accepted = result.verdict->path;
    const bool to_its_end = static_cast<int>(accepted.size()) == result.tree->node(n_drafted).depth;
    text.length = to_its_end ? text.length + 2 : std::max(text.length - 1, 1);
  }
}

void ModelDrafter::rewind(const Context& context, std::size_t n_common) {
  Text& text = texts_.at(context.id);
  text.pending.clear();
  text.sequence->keep({});
  // The root is always run anew.
  const std::size_t n_kept = std::min(n_common, context.tokens.size() - 1);
  if (static_cast<std::size_t>(text.sequence->n_kept()) > n_kept) {
    text.sequence->truncate(static_cast<int>(n_kept));
  }
}

void ModelDrafter::end(SequenceId id) { texts_.erase(id); }

DrafterPlan read_model_drafter(const Spec& spec) {
  spec.require_keys(
      {"length", "schedule", "confidence", "updates", "vocabulary", DrafterWeights::kKey});
  const DrafterWeights weights = DrafterWeights::read(spec);
  const DraftLength length{
      .first = spec.integer("length", 1, kMostDraftNodes).value_or(kDefaultDraftLength),
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
      .shape = chain_shape(length.follows_acceptance ? kMostDraftNodes : length.first),
      .confidence = spec.number("confidence", 0, 1).value_or(0),
      .make = load(path)};
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
