// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/heads/mtp_drafter.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <utility>

#include "model/heads/gemma4_assistant.h"
#include "model/heads/mtp_modules.h"
#include "model/prefill.h"
#include "outrider/error.h"
#include "speculate/drafters/heads/assistant_drafter.h"
#include "speculate/drafters/heads/eagle_drafter.h"
#include "speculate/registry/drafter_weights.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {
namespace {

class SingleModule final : public EagleDrafter {
 public:
  using EagleDrafter::EagleDrafter;
  std::string_view name() const override { return "mtp"; }
};

}  // namespace

MtpDrafter::MtpDrafter(std::vector<std::unique_ptr<FeatureHead>> modules)
    : modules_(std::move(modules)),
      dim_(static_cast<std::size_t>(modules_.front()->config().dim)),
      blocks_(dim_) {}
MtpDrafter::~MtpDrafter() = default;

int MtpDrafter::n_queued(const Progress& progress) const {
  return static_cast<int>(progress.queued_features.size() / dim_);
}

// Whether the features of all tokens but the last are known and the last of them is queued.
bool MtpDrafter::is_ready(const State& state, const Context& context) const {
  const Progress& first = state.front();
  return !first.queued_features.empty() &&
         first.sequence->n_kept() + n_queued(first) + 1 == static_cast<int>(context.tokens.size());
}

void MtpDrafter::begin(const Context& context) {
  State state(modules_.size());
  for (std::size_t module = 0; module < modules_.size(); ++module) {
    state[module].sequence = modules_[module]->open({});
  }
  states_[context.id] = std::move(state);
}

std::size_t MtpDrafter::n_behind(const Context& context) const {
  return static_cast<std::size_t>(std::max(n_queued(states_.at(context.id).front()) - 1, 0));
}

// Row i of module k reads token i + k + 1 and the output of module k - 1 at row i, which is not
// kept. If the common text includes all rows that module 0 has run, the text continues with the
// queued states. Otherwise all modules restart at the lowest row that any of them needs.
std::size_t MtpDrafter::reusable(SequenceId earlier, std::size_t n_common) const {
  const State& state = states_.at(earlier);
  const Progress& first = state.front();
  std::size_t n_rows = n_common - std::min(n_common, modules_.size());
  const auto n_kept = static_cast<std::size_t>(first.sequence->n_kept());
  if (n_rows >= n_kept) return std::min(n_rows, n_kept + static_cast<std::size_t>(n_queued(first)));
  for (const Progress& progress : state) {
    n_rows = std::min(n_rows, static_cast<std::size_t>(progress.sequence->n_kept()));
  }
  return n_rows;
}

void MtpDrafter::begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) {
  const State& kept = states_.at(earlier);
  const auto n_kept = static_cast<std::size_t>(kept.front().sequence->n_kept());
  State state(modules_.size());
  for (std::size_t module = 0; module < state.size(); ++module) {
    state[module].sequence = kept[module].sequence->fork();
    if (n_run < n_kept) {
      // If a window has dropped that place, or a module has fewer rows, rows are missing and the
      // text gets plain decoding.
      state[module].sequence->rewind(static_cast<int>(n_run));
    } else {
      const auto queued = std::span<const float>(kept[module].queued_features);
      const auto taken = module == 0 ? queued.first((n_run - n_kept) * dim_) : queued;
      state[module].queued_features.assign(taken.begin(), taken.end());
    }
  }
  states_[context.id] = std::move(state);
}

void MtpDrafter::add_features(State& state, const FeatureRows& features, int n) {
  for (int i = 0; i < n; ++i) {
    const std::span<const float> row = features.row(i);
    state.front().queued_features.insert(state.front().queued_features.end(), row.begin(),
                                         row.end());
  }
}

// Runs every module's rows of committed tokens except the last one with a queued state. A draft
// asks for module 0's logits there; the other modules lack that row's token.
void MtpDrafter::run_known(const Context& context, State& state) {
  for (std::size_t module = 0; module < modules_.size(); ++module) {
    for (int n; (n = std::min(n_queued(state[module]) - 1, kPrefillRows)) > 0;) {
      const Running running{.context = &context,
                            .state = &state,
                            .tree = nullptr,
                            .nodes = {},
                            .wanted = {},
                            .n_known = n};
      run(static_cast<int>(module), {&running, 1});
    }
  }
}

void MtpDrafter::prefill(const Context& context, std::span<const TokenId> /*tokens*/,
                         const FeatureRows& features) {
  State& state = states_.at(context.id);
  add_features(state, features, features.n_rows());
  if (n_queued(state.front()) > kPrefillRows) run_known(context, state);
}

// Lists what a module runs to get the logits after the nodes `wanted`, which are of level `module`:
// these nodes and their ancestors but the root, in order, and the known rows up to its last.
MtpDrafter::Running MtpDrafter::to_run(int module, const Context& context, State& state,
                                       const DraftTree& tree, std::span<const int> wanted) const {
  Running running{.context = &context,
                  .state = &state,
                  .tree = &tree,
                  .nodes = {},
                  .wanted = wanted,
                  .n_known = 0};
  const int n = n_queued(state[static_cast<std::size_t>(module)]);
  running.n_known = module == 0 ? n : std::max(n - 1, 0);
  for (int node : wanted) {
    for (; node > 0; node = tree.node(node).parent) running.nodes.push_back(node);
  }
  std::sort(running.nodes.begin(), running.nodes.end());
  running.nodes.erase(std::unique(running.nodes.begin(), running.nodes.end()), running.nodes.end());
  // At the beginning of a short text there are fewer places than draft levels.
  const auto n_tokens = static_cast<int>(context.tokens.size());
  std::erase_if(running.nodes,
                [&](int node) { return n_tokens - 2 - module + tree.node(node).depth < 0; });
  return running;
}

// Adds a text's rows to a module's pass. For a text of n tokens, node rows of module k are at
// places n - 1 - k to n - 2.
void MtpDrafter::add_block(int module, const Running& running) {
  Progress& progress = (*running.state)[static_cast<std::size_t>(module)];
  blocks_.begin_block(*progress.sequence);
  const int n_kept = progress.sequence->n_kept();
  for (int i = 0; i < running.n_known; ++i) {
    const auto place = static_cast<std::size_t>(n_kept + i + module + 1);
    blocks_.add(running.context->tokens[place], i - 1);
  }
  blocks_.add_states(std::span<const float>(progress.queued_features)
                         .first(static_cast<std::size_t>(running.n_known) * dim_));
  if (module == 0 && !running.wanted.empty()) blocks_.ask();  // after the root
  if (running.tree == nullptr) return;
  const DraftTree& tree = *running.tree;
  progress.row_of.assign(static_cast<std::size_t>(tree.n_nodes()), -1);
  for (const int node : running.nodes) {
    const int parent = tree.node(node).parent;
    // -1: the parent has no row.
    const int above = progress.row_of[static_cast<std::size_t>(parent)];
    const int row = blocks_.add(tree.node(node).token, running.n_known + above);
    blocks_.add_states(predicted_at(*running.state, module - 1, parent));
    progress.row_of[static_cast<std::size_t>(node)] = row - running.n_known;
    if (std::binary_search(running.wanted.begin(), running.wanted.end(), node)) blocks_.ask();
  }
}

void MtpDrafter::run(int module, std::span<const Running> all) {
  blocks_.clear();
  for (const Running& running : all) add_block(module, running);
  modules_[static_cast<std::size_t>(module)]->forward(blocks_.blocks(), {.logits = blocks_.rows()},
                                                      output());
  for (std::size_t i = 0; i < all.size(); ++i) take_predicted(module, all[i], blocks_.first_row(i));
}

// After a module's pass: outputs of known rows are queued for the next module, and these rows are
// kept. A node's output serves its children in the next module.
void MtpDrafter::take_predicted(int module, const Running& running, int first_row) {
  const auto index = static_cast<std::size_t>(module);
  Progress& progress = (*running.state)[index];
  const auto n_known = static_cast<std::size_t>(running.n_known);
  const std::span<const float> given = std::span<const float>(output().features)
                                           .subspan(static_cast<std::size_t>(first_row) * dim_,
                                                    (n_known + running.nodes.size()) * dim_);
  const std::span<const float> known = given.first(n_known * dim_);
  const std::span<const float> of_nodes = given.subspan(n_known * dim_);
  if (index + 1 < modules_.size()) {
    std::vector<float>& queued_features = (*running.state)[index + 1].queued_features;
    queued_features.insert(queued_features.end(), known.begin(), known.end());
  }
  progress.predicted_states.assign(of_nodes.begin(), of_nodes.end());
  progress.queued_features.erase(
      progress.queued_features.begin(),
      progress.queued_features.begin() + static_cast<std::ptrdiff_t>(n_known * dim_));
  keep_chain(*progress.sequence, n_known);
}

// A module's output at a node of the draft; at the root, the last state queued for the next module.
std::span<const float> MtpDrafter::predicted_at(const State& state, int module, int node) const {
  if (node == 0) {
    return std::span<const float>(state[static_cast<std::size_t>(module) + 1].queued_features)
        .last(dim_);
  }
  const Progress& progress = state[static_cast<std::size_t>(module)];
  const auto place = static_cast<std::size_t>(progress.row_of[static_cast<std::size_t>(node)]);
  return std::span<const float>(progress.predicted_states).subspan(place * dim_, dim_);
}

int MtpDrafter::prepare(const DraftJob& job) {
  const bool ready = is_ready(states_.at(job.context->id), *job.context);
  return ready ? static_cast<int>(modules_.size()) : 0;
}

LevelwiseDrafter::RowPer MtpDrafter::run_level(int level, std::span<const Growing> drafts) {
  running_.clear();
  for (const Growing& draft : drafts) {
    const Context& context = draft.context();
    running_.push_back(
        to_run(level, context, states_.at(context.id), draft.tree(), draft.frontier()));
  }
  run(level, running_);
  return RowPer::node;
}

void MtpDrafter::complete(const Growing& draft) {
  for (Progress& progress : states_.at(draft.context().id)) {
    draft.growth->renumber(progress.row_of);
  }
}

bool MtpDrafter::run_node(const Context& context, const DraftTree& tree, int node) {
  State& state = states_.at(context.id);
  const int module = tree.node(node).depth;
  if (module >= static_cast<int>(modules_.size())) return false;
  if (node == 0 && !is_ready(state, context)) return false;
  const Running running = to_run(module, context, state, tree, {&node, 1});
  run(module, {&running, 1});
  return true;
}

void MtpDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    State& state = states_.at(result.context->id);
    // The root and the accepted tokens that have a token after them. If earlier features were left
    // out, the text gets plain decoding.
    const int n_known = state.front().sequence->n_kept() + n_queued(state.front());
    const int n_new = static_cast<int>(result.context->tokens.size()) - 1 - n_known;
    if (n_new > result.features.n_rows()) continue;
    add_features(state, result.features, n_new);
    if (n_queued(state.front()) > kPrefillRows) run_known(*result.context, state);
  }
}

void MtpDrafter::end(SequenceId id) { states_.erase(id); }

DrafterPlan read_mtp_drafter(const Spec& spec) {
  return {
      .traits = {.has_draft_prob = true, .prefix_determined = false, .reads_features = true},
      .shape = chain_shape(kDefaultDraftLength),
      .confidence = spec.number("confidence", 0, 1).value_or(0),
      .make = [path = std::filesystem::path(spec.value()), weights = DrafterWeights::read(spec)](
                  const DrafterMaterials& materials) -> std::unique_ptr<Drafter> {
        if (!path.empty() && is_gemma4_assistant(path)) {
          return std::make_unique<AssistantDrafter>(
              load_gemma4_assistant(path, *materials.target, weights.options(materials.load)));
        }
        if (path.empty() && materials.target_path.empty()) {
          throw Error("load drafter", "mtp", "a target in files, whose modules these are",
                      "one from memory (mtp:PATH)");
        }
        auto modules = load_mtp_modules(path.empty() ? materials.target_path : path,
                                        *materials.target, weights.options(materials.load));
        if (modules.size() > 1) return std::make_unique<MtpDrafter>(std::move(modules));
        return std::make_unique<SingleModule>(std::move(modules.front()));
      }};
}

}  // namespace outrider
