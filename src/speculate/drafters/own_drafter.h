// SPDX-License-Identifier: Apache-2.0
// Adapts a program's drafter (outrider/own_drafter.h) to the interface Drafter.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_OWN_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_OWN_DRAFTER_H_

#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "outrider/own_drafter.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Checks all input from the program's code. An exception of that code about a text is kept as the
// text's failure(); other texts of the round continue.
//
// Tokens without a TokenDistribution are point masses. A TokenDistribution is recorded as the
// distribution of its token's draw, and is not shown to rules as the drafter's distribution after a
// node: rules that need these refuse the drafter. With a greedy transform the distributions are
// dropped. The target's distribution is a point mass then, and a distribution that also rounds to a
// point mass would leave an empty residual.
class OwnDrafterAdapter final : public Drafter {
 public:
  static constexpr int kLength = 16;  // default limit of the longest path, in tokens
  static constexpr int kTotal = 64;   // default limit of a draft, in tokens

  OwnDrafterAdapter(std::shared_ptr<OwnDrafter> own, int vocabulary_size);
  std::string_view name() const override { return "own"; }
  DrafterTraits traits() const override { return {}; }
  void begin(const Context& context) override;
  void propose(std::span<DraftJob> jobs) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;
  std::exception_ptr failure(SequenceId id) const override;
  std::int64_t n_passes() const override { return 0; }

 private:
  struct State {
    std::int64_t id = 0;         // the id that the program sees
    std::exception_ptr failure;  // null: none
  };

  std::shared_ptr<OwnDrafter> own_;
  int vocabulary_size_;
  std::unordered_map<SequenceId, State> states_;
  std::vector<int> accepted_;  // reused from round to round
};

// "own[:NAME][,length=K,total=N]" for a program's drafter (not null).
DrafterPlan read_own_drafter(const Spec& spec, const std::shared_ptr<OwnDrafter>& own);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_OWN_DRAFTER_H_
