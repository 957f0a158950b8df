// What a request's grammar makes certain, without a model.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_GRAMMAR_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_GRAMMAR_DRAFTER_H_

#include <string>
#include <string_view>
#include <vector>

#include "speculate/drafter_plan.h"
#include "speculate/drafters/index_drafter.h"

namespace outrider {

// A chain: first the tokens that alone are allowed, which cannot be rejected, and behind them the
// bytes that must follow, in the longest tokens that spell them; the target may prefer others.
// Nothing where the request has no grammar, or the grammar leaves a choice. To be used with others,
// as "first:grammar,B" or "relay:grammar+B".
class GrammarDrafter final : public IndexDrafter {
 public:
  static constexpr int kLength = 16;  // unless the spec says another

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
