// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/grammar_drafter.h"

#include <algorithm>
#include <cstddef>

#include "speculate/tree_shapes/open_shape.h"

namespace outrider {

void GrammarDrafter::propose(std::span<DraftJob> jobs) {
  for (const DraftJob& job : jobs) {
    if (job.context->history->is_constrained()) propose_one(job);
  }
}

void GrammarDrafter::propose_one(const DraftJob& job) {
  const int n_max = std::min({length_, job.budget.depth, job.budget.n_nodes, job.shape->depth()});
  if (n_max <= 0) return;
  const auto most = static_cast<std::size_t>(n_max);
  GrammarMatcher& matcher = job.context->history->matcher();
  matcher.forced(job.context->history->state_behind({}), most, tokens_);
  const int state = job.context->history->state_behind(tokens_);
  // Assumes at most four bytes per token on average.
  matcher.certain_text(state, 4 * (most - tokens_.size()), text_);
  for (std::string_view rest = text_; !rest.empty() && tokens_.size() < most;) {
    const TokenId token = matcher.trie().longest(rest);
    if (token == kNoToken) break;
    tokens_.push_back(token);
    rest.remove_prefix(matcher.trie().bytes(token).size());
  }
  int node = 0;
  for (const TokenId token : tokens_) node = job.tree->add_child(node, token, kPointMass);
}

DrafterPlan read_grammar_drafter(const Spec& spec) {
  spec.require_no_value();
  const int length =
      static_cast<int>(spec.integer("length", 1, kMaxDraftNodes).value_or(GrammarDrafter::kLength));
  return {.traits = {},
          .shape = std::make_shared<OpenShape>(length, length),
          .make = [length](const DrafterMaterials&) {
            return std::make_unique<GrammarDrafter>(length);
          }};
}

}  // namespace outrider
