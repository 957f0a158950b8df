#include "speculate/drafters/mtp_drafter.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <utility>

#include "model/heads/mtp_modules.h"
#include "model/prefill.h"
#include "speculate/drafter_weights.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

MtpDrafter::MtpDrafter(std::vector<std::unique_ptr<FeatureHead>> modules)
    : modules_(std::move(modules)),
      dim_(static_cast<std::size_t>(modules_.front()->config().dim)),
      blocks_(dim_) {}
MtpDrafter::~MtpDrafter() = default;

int MtpDrafter::n_waiting(const Progress& progress) const {
  return static_cast<int>(progress.waiting.size() / dim_);
}

// Whether the features of all tokens but the last are known and the last of them waits.
bool MtpDrafter::is_ready(const Text& text, const Context& context) const {
  const Progress& first = text.front();
  return !first.waiting.empty() &&
         first.sequence->n_kept() + n_waiting(first) + 1 == static_cast<int>(context.tokens.size());
}

void MtpDrafter::begin(const Context& context) {
  Text text(modules_.size());
  for (std::size_t module = 0; module < modules_.size(); ++module) {
    text[module].sequence = modules_[module]->open({});
  }
  texts_[context.id] = std::move(text);
}

void MtpDrafter::add_features(Text& text, const FeatureRows& features, int n) {
  for (int i = 0; i < n; ++i) {
    const std::span<const float> row = features.row(i);
    text.front().waiting.insert(text.front().waiting.end(), row.begin(), row.end());
  }
}

// Every module's rows of committed tokens but the last whose state waits: module 0 is asked for its
// logits when a draft begins, and the others lack the token.
void MtpDrafter::run_known(const Context& context, Text& text) {
  for (std::size_t module = 0; module < modules_.size(); ++module) {
    Running running{.context = &context,
                    .text = &text,
                    .tree = nullptr,
                    .nodes = {},
                    .wanted = {},
                    .n_known = n_waiting(text[module]) - 1};
    if (running.n_known > 0) run(static_cast<int>(module), {&running, 1});
  }
}

void MtpDrafter::prefill(const Context& context, std::span<const TokenId> /*tokens*/,
                         const FeatureRows& features) {
  Text& text = texts_.at(context.id);
  add_features(text, features, features.n_rows());
  run_known(context, text);
}

// What a module has to run for the logits behind these nodes of level `module`: the nodes and all
// before them but the root, in order, and the known rows up to its last.
MtpDrafter::Running MtpDrafter::to_run(int module, const Context& context, Text& text,
                                       const DraftTree& tree, std::span<const int> wanted) const {
  Running running{.context = &context,
                  .text = &text,
                  .tree = &tree,
                  .nodes = {},
                  .wanted = wanted,
                  .n_known = 0};
  const int n = n_waiting(text[static_cast<std::size_t>(module)]);
  running.n_known = module == 0 ? n : std::max(n - 1, 0);
  for (int node : wanted) {
    for (; node > 0; node = tree.node(node).parent) running.nodes.push_back(node);
  }
  std::sort(running.nodes.begin(), running.nodes.end());
  running.nodes.erase(std::unique(running.nodes.begin(), running.nodes.end()), running.nodes.end());
  // The beginning of a short text has fewer places than the draft has levels.
  const auto n_tokens = static_cast<int>(context.tokens.size());
  std::erase_if(running.nodes,
                [&](int node) { return n_tokens - 2 - module + tree.node(node).depth < 0; });
  return running;
}

// A text's rows in a pass of a module. Node rows of module k stand at the places n - 1 - k to n - 2
// of a text of n tokens.
void MtpDrafter::add_block(int module, const Running& running) {
  Progress& progress = (*running.text)[static_cast<std::size_t>(module)];
  blocks_.begin_block(*progress.sequence);
  const int n_kept = progress.sequence->n_kept();
  for (int i = 0; i < running.n_known; ++i) {
    const auto place = static_cast<std::size_t>(n_kept + i + module + 1);
    blocks_.add(running.context->tokens[place], i - 1);
  }
  blocks_.add_states(std::span<const float>(progress.waiting)
                         .first(static_cast<std::size_t>(running.n_known) * dim_));
  if (module == 0 && !running.wanted.empty()) blocks_.ask();  // behind the root
  if (running.tree == nullptr) return;
  const DraftTree& tree = *running.tree;
  progress.given_of.assign(static_cast<std::size_t>(tree.n_nodes()), -1);
  for (const int node : running.nodes) {
    const int parent = tree.node(node).parent;
    const int above = progress.given_of[static_cast<std::size_t>(parent)];  // -1: no node's row
    const int row = blocks_.add(tree.node(node).token, running.n_known + above);
    blocks_.add_states(given_at(*running.text, module - 1, parent));
    progress.given_of[static_cast<std::size_t>(node)] = row - running.n_known;
    if (std::binary_search(running.wanted.begin(), running.wanted.end(), node)) blocks_.ask();
  }
}

void MtpDrafter::run(int module, std::span<const Running> all) {
  blocks_.clear();
  for (const Running& running : all) add_block(module, running);
  modules_[static_cast<std::size_t>(module)]->forward(blocks_.blocks(), {.logits = blocks_.rows()},
                                                      output());
  for (std::size_t i = 0; i < all.size(); ++i) take_given(module, all[i], blocks_.first_row(i));
}

// After a pass of a module: what the known rows give waits for the next module, and these rows are
// kept; what a node's row gives is for its children there.
void MtpDrafter::take_given(int module, const Running& running, int first_row) {
  const auto index = static_cast<std::size_t>(module);
  Progress& progress = (*running.text)[index];
  const auto n_known = static_cast<std::size_t>(running.n_known);
  const std::span<const float> given = std::span<const float>(output().features)
                                           .subspan(static_cast<std::size_t>(first_row) * dim_,
                                                    (n_known + running.nodes.size()) * dim_);
  const std::span<const float> known = given.first(n_known * dim_);
  const std::span<const float> of_nodes = given.subspan(n_known * dim_);
  if (index + 1 < modules_.size()) {
    std::vector<float>& waiting = (*running.text)[index + 1].waiting;
    waiting.insert(waiting.end(), known.begin(), known.end());
  }
  progress.given.assign(of_nodes.begin(), of_nodes.end());
  progress.waiting.erase(progress.waiting.begin(),
                         progress.waiting.begin() + static_cast<std::ptrdiff_t>(n_known * dim_));
  keep_chain(*progress.sequence, n_known);
}

// What a module gave at a node of the draft; at the root it is the last state that waits for the
// next module.
std::span<const float> MtpDrafter::given_at(const Text& text, int module, int node) const {
  if (node == 0) {
    return std::span<const float>(text[static_cast<std::size_t>(module) + 1].waiting).last(dim_);
  }
  const Progress& progress = text[static_cast<std::size_t>(module)];
  const auto place = static_cast<std::size_t>(progress.given_of[static_cast<std::size_t>(node)]);
  return std::span<const float>(progress.given).subspan(place * dim_, dim_);
}

int MtpDrafter::prepare(const DraftJob& job) {
  const bool ready = is_ready(texts_.at(job.context->id), *job.context);
  return ready ? static_cast<int>(modules_.size()) : 0;
}

LevelwiseDrafter::RowPer MtpDrafter::run_level(int level, std::span<const Growing> drafts) {
  running_.clear();
  for (const Growing& draft : drafts) {
    const Context& context = draft.context();
    running_.push_back(
        to_run(level, context, texts_.at(context.id), draft.tree(), draft.frontier()));
  }
  run(level, running_);
  return RowPer::node;
}

void MtpDrafter::complete(const Growing& draft) {
  for (Progress& progress : texts_.at(draft.context().id)) {
    draft.growth->renumber(progress.given_of);
  }
}

bool MtpDrafter::run_node(const Context& context, const DraftTree& tree, int node) {
  Text& text = texts_.at(context.id);
  const int module = tree.node(node).depth;
  if (module >= static_cast<int>(modules_.size())) return false;
  if (node == 0 && !is_ready(text, context)) return false;
  const Running running = to_run(module, context, text, tree, {&node, 1});
  run(module, {&running, 1});
  return true;
}

void MtpDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    Text& text = texts_.at(result.context->id);
    // Of the root and the accepted tokens, those that have a token behind them. Where features were
    // left out before, the text is left to plain decoding.
    const int n_known = text.front().sequence->n_kept() + n_waiting(text.front());
    const int n_new = static_cast<int>(result.context->tokens.size()) - 1 - n_known;
    if (n_new > result.features.n_rows()) continue;
    add_features(text, result.features, n_new);
    if (n_waiting(text.front()) > kPrefillRows) run_known(*result.context, text);
  }
}

void MtpDrafter::end(SequenceId id) { texts_.erase(id); }

DrafterPlan read_mtp_drafter(const Spec& spec) {
  spec.require_keys({"confidence", DrafterWeights::kKey});
  return {.traits = {.has_draft_prob = true, .prefix_determined = false, .reads_features = true},
          .shape = chain_shape(kDefaultDraftLength),
          .confidence = spec.number("confidence", 0, 1).value_or(0),
          .make = [path = std::filesystem::path(spec.value()),
                   weights = DrafterWeights::read(spec)](const DrafterMaterials& materials) {
            return std::make_unique<MtpDrafter>(
                load_mtp_modules(path.empty() ? materials.target_path : path, *materials.target,
                                 weights.options(materials.load)));
          }};
}

}  // namespace outrider
