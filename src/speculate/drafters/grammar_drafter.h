// SPDX-License-Identifier: Apache-2.0
// The drafter `grammar`: drafts what a request's grammar determines, without a model.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_GRAMMAR_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_GRAMMAR_DRAFTER_H_

#include <string>
#include <string_view>
#include <vector>

#include "speculate/drafters/lookup/index_drafter.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// A chain: first the tokens that are the only ones allowed, which cannot be rejected. Then the
// bytes that must follow, in the longest tokens that spell them; the target may prefer other
// tokens. Drafts nothing without a grammar, or where the grammar leaves a choice. For use with
// others, as in "first:grammar,B" or "relay:grammar+B".
class GrammarDrafter final : public IndexDrafter {
 public:
  static constexpr int kLength = 16;  // default of the spec

  explicit GrammarDrafter(int length) : length_(length) {}
  std::string_view name() const override { return "grammar"; }
  void propose(std::span<DraftJob> jobs) override;

 private:
  void propose_one(const DraftJob& job);

  int length_;
  std::vector<TokenId> tokens_;
  std::string text_;
};

// "grammar[:length=K]".
DrafterPlan read_grammar_drafter(const Spec& spec);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_GRAMMAR_DRAFTER_H_
