// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/target/lookahead_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "speculate/tree_shapes/open_shape.h"

namespace outrider {
namespace {

// Chooses a token of the text by the text's length and the column. The counter's last word is that
// of no Purpose, so no draw of a request uses this block.
TokenId borrowed_token(std::span<const TokenId> text, std::size_t column) {
  constexpr std::uint32_t kNoPurpose = 1U << 30;
  const auto length = static_cast<std::uint64_t>(text.size());
  const auto block =
      philox4x32({static_cast<std::uint32_t>(length), static_cast<std::uint32_t>(length >> 32),
                  static_cast<std::uint32_t>(column), kNoPurpose},
                 {0, 0});
  return text[static_cast<std::size_t>(std::uint64_t{block[0]} * length >> 32)];
}

// Adds the missing part of the path below the root.
void add_path(DraftTree& tree, std::span<const TokenId> path, const Budget& budget) {
  int node = 0;
  for (const TokenId token : path) {
    if (tree.node(node).depth == budget.depth) return;
    int child = tree.next_child(node, node);
    while (child >= 0 && tree.node(child).token != token) child = tree.next_child(node, child);
    if (child < 0 && tree.n_drafted() == budget.n_nodes) return;
    node = child < 0 ? tree.add_child(node, token, kPointMass) : child;
  }
}

}  // namespace

LookaheadDrafter::LookaheadDrafter(const Options& options, std::vector<TokenId> end_tokens)
    : options_(options), end_tokens_(std::move(end_tokens)) {}

void LookaheadDrafter::begin(const Context& context) {
  states_.insert_or_assign(context.id, State{.window = JacobiWindow(options_.window),
                                             .pool = NgramPool(options_.n_guesses)});
}

void LookaheadDrafter::propose(std::span<DraftJob> jobs) {
  for (DraftJob& job : jobs) {
    State& state = states_.at(job.context->id);
    state.newest.clear();
    if (job.budget.depth == 0) continue;  // no guesses after this round either
    DraftTree& tree = *job.tree;
    const auto guesses = state.pool.guesses(tree.node(0).token);
    for (auto guess = guesses.rbegin(); guess != guesses.rend(); ++guess) {
      add_path(tree, *guess, job.budget);
      if (job.shape->is_chain()) break;
    }
    if (!state.started) {
      tokens_.clear();
      for (int column = 0; column < state.window.columns(); ++column) {
        tokens_.push_back(borrowed_token(job.context->tokens, static_cast<std::size_t>(column)));
      }
      state.window.start(tokens_);
      state.started = true;
    }
    if (state.window.depth() <= job.budget.scratch_depth) state.window.add_to(tree, state.newest);
  }
}

void LookaheadDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    State& state = states_.at(result.context->id);
    // An enclosing drafter may have had no nodes left for the window.
    const bool ran = !state.newest.empty() && state.newest.back() < result.tree->n_nodes();
    tokens_.clear();
    for (const int node : state.newest) {
      if (ran) tokens_.push_back(guesses_.behind(result, node, 0));
    }
    state.newest.clear();
    if (!ran) continue;
    state.window.advance(tokens_, [&state](TokenId first, std::span<const TokenId> others) {
      state.pool.see(first, others);
    });
    const std::span<TokenId> newest = state.window.newest_tokens();
    for (std::size_t column = 0; column < newest.size(); ++column) {
      if (std::find(end_tokens_.begin(), end_tokens_.end(), newest[column]) != end_tokens_.end()) {
        newest[column] = borrowed_token(result.context->tokens, column);
      }
    }
  }
}

DrafterPlan read_lookahead_drafter(const Spec& spec) {
  spec.require_no_value();
  LookaheadDrafter::Options options;
  options.window.width = spec.integer("window", 1, kMaxDraftNodes).value_or(options.window.width);
  options.window.ngram = spec.integer("ngram", 2, kMaxDraftNodes).value_or(options.window.ngram);
  options.n_guesses = spec.integer("guesses", 1, kMaxDraftNodes).value_or(options.n_guesses);
  const int depth = options.window.ngram - 1;
  const int n_guessed = options.n_guesses * depth;
  const int n_nodes = JacobiWindow::max_nodes(options.window) + n_guessed;
  if (n_nodes > kMaxDraftNodes) {
    throw UsageError(
        "read drafter", "lookahead",
        fmt::format("a window and guesses of at most {} tokens together", kMaxDraftNodes),
        fmt::format("{}", n_nodes));
  }
  DrafterPlan plan;
  plan.shape = options.n_guesses == 1 ? chain_shape(depth)
                                      : std::make_shared<const OpenShape>(depth, n_guessed);
  plan.make = [options](const DrafterMaterials& materials) {
    return std::make_unique<LookaheadDrafter>(options, materials.target->config().end_tokens);
  };
  return plan;
}

}  // namespace outrider
