// SPDX-License-Identifier: Apache-2.0
// The example of docs/drafters.md, which a test keeps equal to it from the namespace on.
#ifndef OUTRIDER_TESTS_SUPPORT_EXAMPLE_DRAFTER_H_
#define OUTRIDER_TESTS_SUPPORT_EXAMPLE_DRAFTER_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "speculate/drafters/lookup/index_drafter.h"
#include "speculate/registry/drafter_plan.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

// Proposes what followed each token when the text had it last: a chain of single steps.
class LastTimeDrafter final : public IndexDrafter {
 public:
  explicit LastTimeDrafter(int length) : length_(length) {}
  std::string_view name() const override { return "last-time"; }

  // A text begins: whatever is kept for it is kept by its id.
  void begin(const Context& context) override { states_[context.id] = {}; }

  void propose(std::span<DraftJob> jobs) override {
    for (const DraftJob& job : jobs) {
      State& state = states_.at(job.context->id);
      // Committed tokens only ever grow: look at the new ones.
      const std::span<const TokenId> tokens = job.context->tokens;
      for (; state.n_seen < tokens.size(); ++state.n_seen) {
        if (state.n_seen > 0) state.next[tokens[state.n_seen - 1]] = tokens[state.n_seen];
      }
      // The root is node 0, and in a chain each node is the parent of the next.
      TokenId token = tokens.back();
      const int length = std::min({length_, job.budget.depth, job.budget.n_nodes});
      for (int parent = 0; parent < length; ++parent) {
        const auto next = state.next.find(token);
        if (next == state.next.end()) break;  // a draft may be short, or empty
        token = next->second;
        job.tree->add_child(parent, token, kPointMass);
      }
    }
  }

  // Only tokens that the drafter was shown and that are taken back ask for anything.
  void rewind(const Context& context, std::size_t n_common) override {
    if (states_.at(context.id).n_seen > n_common) begin(context);
  }
  void end(SequenceId id) override { states_.erase(id); }

 private:
  struct State {
    std::size_t n_seen = 0;
    std::unordered_map<TokenId, TokenId> next;
  };
  int length_;
  std::unordered_map<SequenceId, State> states_;
};

// "last-time[:length=K]". The registry refuses keys that its description does not have.
inline DrafterPlan read_last_time_drafter(const Spec& spec) {
  spec.require_no_value();
  const int length = spec.integer("length", 1, kMaxDraftNodes).value_or(4);
  return {.traits = {}, .shape = chain_shape(length), .make = [length](const DrafterMaterials&) {
            return std::make_unique<LastTimeDrafter>(length);
          }};
}

}  // namespace outrider

#endif  // OUTRIDER_TESTS_SUPPORT_EXAMPLE_DRAFTER_H_
