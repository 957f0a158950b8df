#include "speculate/drafters/eagle_drafter.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "model/heads/eagle_head.h"
#include "model/prefill.h"
#include "speculate/drafter_weights.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

struct EagleDrafter::Growing {
  DraftJob* job = nullptr;
  Text* text = nullptr;
  TreeGrowth* growth = nullptr;
};

EagleDrafter::EagleDrafter(std::unique_ptr<FeatureHead> head)
    : head_(std::move(head)), dim_(static_cast<std::size_t>(head_->config().dim)) {}
EagleDrafter::~EagleDrafter() = default;

int EagleDrafter::n_waiting(const Text& text) const {
  return static_cast<int>(text.waiting.size() / dim_);
}

// Rows whose states are known, run or not.
int EagleDrafter::n_known(const Text& text) const {
  return text.sequence->n_kept() + n_waiting(text);
}

// Whether the rows of a text of n tokens lie within the head's context. A text beyond it is left to
// plain decoding, for good: texts only grow.
bool EagleDrafter::has_room(std::size_t n_tokens) const {
  return n_tokens <= static_cast<std::size_t>(head_->config().context_length) + 1;
}

// The features of the next n places join those that wait. Rows wait until a draft needs the last of
// them; many at once are run in passes of bounded size.
void EagleDrafter::add_features(const Context& context, Text& text, const FeatureRows& features,
                                int n) {
  features_.clear();
  for (int i = 0; i < n; ++i) {
    const std::span<const float> row = features.row(i);
    features_.insert(features_.end(), row.begin(), row.end());
  }
  const std::size_t first = text.waiting.size();
  text.waiting.resize(first + static_cast<std::size_t>(n) * dim_);
  head_->read(features_, std::span<float>(text.waiting).subspan(first));
  while (n_waiting(text) > kPrefillRows) run_known(context, text, kPrefillRows);
}

// The next n_rows rows of the text, whose states wait.
TokenBlock EagleDrafter::next_block(const Context& context, const Text& text, int n_rows) const {
  const auto n_kept = static_cast<std::size_t>(text.sequence->n_kept());
  const auto n = static_cast<std::size_t>(n_rows);
  return {.sequence = text.sequence.get(),
          .tokens = context.tokens.subspan(n_kept + 1, n),
          .parents = {},
          .features = std::span<const float>(text.waiting).first(n * dim_)};
}

void EagleDrafter::run_known(const Context& context, Text& text, int n_rows) {
  const TokenBlock block = next_block(context, text, n_rows);
  head_->forward({&block, 1}, {.logits = {.kind = RowSet::Kind::none, .rows = {}}}, output_);
  keep_rows(text, n_rows);
}

void EagleDrafter::keep_rows(Text& text, int n_rows) {
  path_.resize(static_cast<std::size_t>(n_rows));
  std::iota(path_.begin(), path_.end(), 0);
  text.sequence->keep(path_);
  text.waiting.erase(text.waiting.begin(),
                     text.waiting.begin() + static_cast<std::ptrdiff_t>(n_rows * dim_));
}

// The state that the row of a node gave; the node was run.
std::span<const float> EagleDrafter::given_at(const Text& text, int node) const {
  const auto place = static_cast<std::size_t>(text.pending[static_cast<std::size_t>(node)] + 1);
  return std::span<const float>(text.given).subspan(place * dim_, dim_);
}

void EagleDrafter::begin(const Context& context) {
  texts_[context.id] = {.sequence = head_->open({}), .waiting = {}, .pending = {}, .given = {}};
}

void EagleDrafter::prefill(const Context& context, std::span<const TokenId> /*tokens*/,
                           const FeatureRows& features) {
  if (!has_room(context.tokens.size())) return;
  Text& text = texts_.at(context.id);
  add_features(context, text, features, features.n_rows());
  if (n_waiting(text) > 1) run_known(context, text, n_waiting(text) - 1);
}

void EagleDrafter::propose(std::span<DraftJob> jobs) {
  growing_.clear();
  while (growths_.size() < jobs.size()) growths_.push_back(std::make_unique<TreeGrowth>());
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    DraftJob& job = jobs[index];
    Text& text = texts_.at(job.context->id);
    text.pending.clear();
    const std::size_t n_tokens = job.context->tokens.size();
    if (text.waiting.empty() || n_known(text) + 1 != static_cast<int>(n_tokens) ||
        !has_room(n_tokens)) {
      continue;
    }
    // A tree of depth n runs the rows up to the root's and n - 1 further positions.
    const int room = head_->config().context_length - static_cast<int>(n_tokens) + 2;
    TreeGrowth& growth = *growths_[index];
    growth.start(job, room);
    if (growth.frontier().empty()) continue;
    growing_.push_back({.job = &job, .text = &text, .growth = &growth});
  }
  if (growing_.empty()) return;
  run_contexts();
  drop_complete();
  while (!growing_.empty()) {
    run_frontiers();
    drop_complete();
  }
}

// The first level: the rows of what was committed since the last draft, the root's last.
void EagleDrafter::run_contexts() {
  blocks_.clear();
  for (const Growing& growing : growing_) {
    blocks_.push_back(next_block(*growing.job->context, *growing.text, n_waiting(*growing.text)));
  }
  head_->forward(blocks_, {.logits = {.kind = RowSet::Kind::last_of_each_block, .rows = {}}},
                 output_);
  ++n_passes_;
  int row = -1;
  for (std::size_t index = 0; index < growing_.size(); ++index) {
    const Growing& growing = growing_[index];
    Text& text = *growing.text;
    const int n_rows = n_waiting(text);
    row += n_rows;
    const std::span<const float> given = output_.feature_row(row);
    text.given.assign(given.begin(), given.end());
    text.pending.assign(1, -1);  // the root's row is kept, not pending
    keep_rows(text, n_rows);
    growing.growth->expand(0, output_.logits_row(static_cast<int>(index)));
    growing.growth->next_level();
  }
}

// Every further level, behind the pending rows of the levels before.
void EagleDrafter::run_frontiers() {
  std::size_t n_rows = 0;
  for (const Growing& growing : growing_) n_rows += growing.growth->frontier().size();
  block_tokens_.clear();
  block_parents_.clear();
  block_states_.clear();
  block_tokens_.reserve(n_rows);  // the blocks below point into these
  block_parents_.reserve(n_rows);
  block_states_.reserve(n_rows * dim_);
  blocks_.clear();
  for (const Growing& growing : growing_) {
    const DraftTree& tree = *growing.job->tree;
    Text& text = *growing.text;
    text.pending.resize(static_cast<std::size_t>(tree.n_nodes()), -1);
    const std::span<const int> frontier = growing.growth->frontier();
    const std::size_t first = block_tokens_.size();
    int next = text.sequence->n_pending();
    for (const int node : frontier) {
      const int parent = tree.node(node).parent;
      const std::span<const float> state = given_at(text, parent);
      block_tokens_.push_back(tree.node(node).token);
      block_parents_.push_back(text.pending[static_cast<std::size_t>(parent)]);
      block_states_.insert(block_states_.end(), state.begin(), state.end());
      text.pending[static_cast<std::size_t>(node)] = next++;
    }
    blocks_.push_back({.sequence = text.sequence.get(),
                       .tokens = {block_tokens_.data() + first, frontier.size()},
                       .parents = {block_parents_.data() + first, frontier.size()},
                       .features = {block_states_.data() + first * dim_, frontier.size() * dim_}});
  }
  head_->forward(blocks_, {.logits = {.kind = RowSet::Kind::all, .rows = {}}}, output_);
  ++n_passes_;
  int row = 0;
  for (const Growing& growing : growing_) {
    for (const int node : growing.growth->frontier()) {
      const std::span<const float> given = output_.feature_row(row);
      growing.text->given.insert(growing.text->given.end(), given.begin(), given.end());
      growing.growth->expand(node, output_.logits_row(row++));
    }
    growing.growth->next_level();
  }
}

void EagleDrafter::drop_complete() {
  std::erase_if(growing_, [](const Growing& growing) {
    if (!growing.growth->frontier().empty()) return false;
    growing.growth->renumber(growing.text->pending);
    return true;
  });
}

bool EagleDrafter::draft_at(const Context& context, const DraftTree& tree, int node,
                            Distribution& draft_prob, Distribution* raw_draft) {
  Text& text = texts_.at(context.id);
  const auto depth = static_cast<std::size_t>(tree.node(node).depth);
  if (!has_room(context.tokens.size() + depth)) return false;
  const TokenId token = tree.node(node).token;
  int parent = -1;
  TokenBlock block;
  if (node == 0) {  // nothing was drafted
    if (text.waiting.empty() || n_known(text) + 1 != static_cast<int>(context.tokens.size())) {
      return false;
    }
    block = next_block(context, text, n_waiting(text));
  } else {
    // The draft's beginning has been run; what is missing is its last token.
    parent = text.pending[static_cast<std::size_t>(tree.node(node).parent)];
    block = {.sequence = text.sequence.get(),
             .tokens = {&token, 1},
             .parents = {&parent, 1},
             .features = given_at(text, tree.node(node).parent)};
  }
  head_->forward({&block, 1}, {.logits = {.kind = RowSet::Kind::last_of_each_block, .rows = {}}},
                 output_);
  ++n_passes_;
  if (node == 0) keep_rows(text, n_waiting(text));
  distributions_at(context, tree, node, output_.logits_row(0), penalised_, draft_prob, raw_draft);
  return true;
}

void EagleDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    Text& text = texts_.at(result.context->id);
    text.sequence->keep({});  // those rows read predictions
    text.pending.clear();
    const std::size_t n_tokens = result.context->tokens.size();
    if (!has_room(n_tokens)) {
      text.waiting = {};
      continue;
    }
    // The root and the accepted tokens, as far as they were committed: each has a token behind it
    // now, so that its row can be run. Where features were left out before, they do not help.
    const int n_new = static_cast<int>(n_tokens) - 1 - n_known(text);
    if (n_new <= result.features.n_rows()) {
      add_features(*result.context, text, result.features, n_new);
    }
  }
}

void EagleDrafter::end(SequenceId id) { texts_.erase(id); }

DrafterPlan read_eagle_drafter(const Spec& spec) {
  spec.require_keys({"confidence", DrafterWeights::kKey});
  return {.traits = {.has_draft_prob = true, .prefix_determined = false, .reads_features = true},
          .shape = std::make_shared<FixedShape>(eagle1_tree()),
          .confidence = spec.number("confidence", 0, 1).value_or(0),
          .make = [path = spec.required_value("eagle:PATH"),
                   weights = DrafterWeights::read(spec)](const DrafterMaterials& materials) {
            return std::make_unique<EagleDrafter>(
                load_eagle_head(path, *materials.target, weights.options(materials.load)));
          }};
}

}  // namespace outrider
