#include "speculate/drafters/mtp_drafter.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <numeric>
#include <utility>

#include "model/heads/mtp_modules.h"
#include "model/prefill.h"
#include "speculate/drafter_weights.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

struct MtpDrafter::Growing {
  DraftJob* job = nullptr;
  Text* text = nullptr;
  TreeGrowth* growth = nullptr;
};

MtpDrafter::MtpDrafter(std::vector<std::unique_ptr<FeatureHead>> modules)
    : modules_(std::move(modules)),
      dim_(static_cast<std::size_t>(modules_.front()->config().dim)) {}
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

// Node rows of module k stand at the places n - 1 - k to n - 2 of a text of n tokens. What the
// known rows give waits for the next module; what a node's row gives is for its children there.
void MtpDrafter::run(int module, std::span<Running> all) {
  const auto index = static_cast<std::size_t>(module);
  block_tokens_.clear();
  block_parents_.clear();
  block_states_.clear();
  rows_.clear();
  std::vector<std::size_t> firsts;
  for (Running& running : all) {
    Progress& progress = (*running.text)[index];
    const std::size_t first = block_tokens_.size();
    firsts.push_back(first);
    const int n_kept = progress.sequence->n_kept();
    for (int i = 0; i < running.n_known; ++i) {
      block_tokens_.push_back(
          running.context->tokens[static_cast<std::size_t>(n_kept + i + module + 1)]);
      block_parents_.push_back(i - 1);
    }
    block_states_.insert(
        block_states_.end(), progress.waiting.begin(),
        progress.waiting.begin() + static_cast<std::ptrdiff_t>(running.n_known * dim_));
    if (module == 0 && !running.wanted.empty()) {
      rows_.push_back(static_cast<int>(block_tokens_.size()) - 1);  // behind the root
    }
    if (running.tree != nullptr) {
      progress.given_of.assign(static_cast<std::size_t>(running.tree->n_nodes()), -1);
    }
    auto wanted = running.wanted.begin();
    for (const int node : running.nodes) {
      const int parent = running.tree->node(node).parent;
      const int place = progress.given_of[static_cast<std::size_t>(parent)];
      const std::span<const float> state = given_at(*running.text, module - 1, parent);
      block_parents_.push_back(place < 0 ? running.n_known - 1 : running.n_known + place);
      progress.given_of[static_cast<std::size_t>(node)] =
          static_cast<int>(block_tokens_.size() - first) - running.n_known;
      if (wanted != running.wanted.end() && *wanted == node) {
        rows_.push_back(static_cast<int>(block_tokens_.size()));
        ++wanted;
      }
      block_tokens_.push_back(running.tree->node(node).token);
      block_states_.insert(block_states_.end(), state.begin(), state.end());
    }
  }
  blocks_.clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t first = firsts[i];
    const std::size_t n = (i + 1 < all.size() ? firsts[i + 1] : block_tokens_.size()) - first;
    blocks_.push_back({.sequence = (*all[i].text)[index].sequence.get(),
                       .tokens = {block_tokens_.data() + first, n},
                       .parents = {block_parents_.data() + first, n},
                       .features = {block_states_.data() + first * dim_, n * dim_}});
  }
  modules_[index]->forward(blocks_, {.logits = {.kind = RowSet::Kind::listed, .rows = rows_}},
                           output_);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Text& text = *all[i].text;
    Progress& progress = text[index];
    const float* given = output_.features.data() + firsts[i] * dim_;
    const auto n_known = static_cast<std::size_t>(all[i].n_known);
    if (index + 1 < modules_.size()) {
      text[index + 1].waiting.insert(text[index + 1].waiting.end(), given, given + n_known * dim_);
    }
    progress.given.assign(given + n_known * dim_, given + (n_known + all[i].nodes.size()) * dim_);
    progress.waiting.erase(progress.waiting.begin(),
                           progress.waiting.begin() + static_cast<std::ptrdiff_t>(n_known * dim_));
    path_.resize(n_known);
    std::iota(path_.begin(), path_.end(), 0);
    progress.sequence->keep(path_);
  }
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

void MtpDrafter::propose(std::span<DraftJob> jobs) {
  growing_.clear();
  while (growths_.size() < jobs.size()) growths_.push_back(std::make_unique<TreeGrowth>());
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    DraftJob& job = jobs[index];
    Text& text = texts_.at(job.context->id);
    if (!is_ready(text, *job.context)) continue;
    TreeGrowth& growth = *growths_[index];
    growth.start(job, static_cast<int>(modules_.size()));
    if (growth.frontier().empty()) continue;
    growing_.push_back({.job = &job, .text = &text, .growth = &growth});
  }
  for (int module = 0; !growing_.empty(); ++module) {
    running_.clear();
    for (const Growing& growing : growing_) {
      running_.push_back(to_run(module, *growing.job->context, *growing.text, *growing.job->tree,
                                growing.growth->frontier()));
    }
    run(module, running_);
    ++n_passes_;
    int row = 0;
    for (const Growing& growing : growing_) {
      for (const int node : growing.growth->frontier()) {
        growing.growth->expand(node, output_.logits_row(row++));
      }
      growing.growth->next_level();
    }
    drop_complete();
  }
}

void MtpDrafter::drop_complete() {
  std::erase_if(growing_, [](const Growing& growing) {
    if (!growing.growth->frontier().empty()) return false;
    for (Progress& progress : *growing.text) growing.growth->renumber(progress.given_of);
    return true;
  });
}

bool MtpDrafter::draft_at(const Context& context, const DraftTree& tree, int node,
                          Distribution& draft_prob, Distribution* raw_draft) {
  Text& text = texts_.at(context.id);
  const int module = tree.node(node).depth;
  if (module >= static_cast<int>(modules_.size())) return false;
  if (node == 0 && !is_ready(text, context)) return false;
  Running running = to_run(module, context, text, tree, {&node, 1});
  run(module, {&running, 1});
  ++n_passes_;
  distributions_at(context, tree, node, output_.logits_row(0), penalised_, draft_prob, raw_draft);
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
