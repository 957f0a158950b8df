// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/composite/spoiled_drafter.h"

#include <algorithm>

#include "outrider/error.h"
#include "speculate/drafters/composite/composite_drafter.h"
#include "speculate/registry/drafter_registry.h"

namespace outrider {

void SpoiledDrafter::begin(const Context& context) {
  n_prompt_[context.id] = static_cast<std::int64_t>(context.tokens.size());
  inner().begin(context);
}

void SpoiledDrafter::begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) {
  n_prompt_[context.id] = static_cast<std::int64_t>(context.tokens.size());
  inner().begin_behind(context, earlier, n_run);
}

bool SpoiledDrafter::is_spoiled(SequenceId id, std::int64_t position) const {
  const std::int64_t n_new = position - n_prompt_.at(id);
  return n_new >= places_.from && n_new < places_.to;
}

TokenId SpoiledDrafter::other_token(TokenId token, std::int64_t position) const {
  // Knuth's multiplicative hash: neighbouring positions get distant tokens.
  const auto hash = static_cast<std::uint64_t>(position) * 2654435761U;
  const auto n_others = static_cast<std::uint64_t>(vocabulary_size_ - 1);
  const auto other = static_cast<TokenId>(hash % n_others);
  return other < token ? other : other + 1;
}

std::optional<double> SpoiledDrafter::foreseen(const Context& context, std::size_t n_tokens) {
  const std::optional<double> n_foreseen = inner().foreseen(context, n_tokens);
  const auto last = static_cast<std::int64_t>(context.tokens.size()) - 1;
  return n_foreseen && is_spoiled(context.id, last) ? 0 : n_foreseen;
}

void SpoiledDrafter::propose(std::span<DraftJob> jobs) {
  inner().propose(jobs);
  for (DraftJob& job : jobs) {
    DraftTree& tree = *job.tree;
    for (int node = 1; node <= tree.n_drafted(); ++node) {
      const std::int64_t position = tree.n_committed() + tree.node(node).depth - 1;
      if (!is_spoiled(job.context->id, position)) continue;
      tree.name(node, other_token(tree.node(node).token, position + tree.rank(node)));
    }
  }
}

// The inner drafter's draft ends before the first spoiled token.
void SpoiledDrafter::observe(std::span<const RoundResult> results) {
  results_.assign(results.begin(), results.end());
  verdicts_.resize(results.size());
  for (std::size_t index = 0; index < results_.size(); ++index) {
    RoundResult& result = results_[index];
    Verdict& verdict = verdicts_[index];
    verdict = *result.verdict;
    const auto first = std::find_if(verdict.path.begin(), verdict.path.end(), [&](int node) {
      const DraftTree& tree = *result.tree;
      return is_spoiled(result.context->id, tree.n_committed() + tree.node(node).depth - 1);
    });
    if (first != verdict.path.end()) {
      verdict.next = result.tree->node(*first).token;
      verdict.path.erase(first, verdict.path.end());
    }
    result.verdict = &verdict;
  }
  inner().observe(results_);
}

void SpoiledDrafter::end(SequenceId id) {
  inner().end(id);
  n_prompt_.erase(id);
}

DrafterPlan read_spoiled_drafter(std::span<const std::string> parts) {
  constexpr const char* kOperation = "read drafter";
  if (parts.size() != 2) {
    throw UsageError(kOperation, "spoiled", "tokens[:from=N,to=M] and a drafter, joined by +",
                     parts.empty() ? "none" : parts.front());
  }
  const Spec spec = Spec::parse("drafter", parts[0]);
  spec.require_name({"tokens"});
  spec.require_no_value();
  spec.require_keys({"from", "to"});
  constexpr int kMax = 1 << 30;
  SpoiledDrafter::Places places;
  if (const auto from = spec.integer("from", 0, kMax)) places.from = *from;
  if (const auto to = spec.integer("to", 0, kMax)) places.to = *to;
  DrafterPlan plan = read_drafter(parts[1]);
  refuse_updates(plan, "spoiled");
  plan.make = [inner = plan.make, places](const DrafterMaterials& materials) {
    return std::make_unique<SpoiledDrafter>(inner(materials), places, materials.vocabulary_size);
  };
  return plan;
}

}  // namespace outrider
