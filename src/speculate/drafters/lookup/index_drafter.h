// SPDX-License-Identifier: Apache-2.0
// The base of drafters that look things up in text: no model, no distributions.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_INDEX_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_INDEX_DRAFTER_H_

#include <cstddef>
#include <cstdint>

#include "speculate/drafter.h"

namespace outrider {

// Every proposal is a point mass, so rules that need the drafter's distributions refuse these
// drafters. They choose their own trees: of a job's shape they use the budget, and whether it is a
// chain. They ignore stop rules, since they have no probabilities; some use DraftWorth.
class IndexDrafter : public Drafter {
 public:
  DrafterTraits traits() const final { return {}; }
  void begin(const Context& /*context*/) override {}
  void begin_behind(const Context& context, SequenceId /*earlier*/,
                    std::size_t /*n_run*/) override {
    begin(context);
  }
  void observe(std::span<const RoundResult> /*results*/) override {}
  void rewind(const Context& /*context*/, std::size_t /*n_common*/) override {}
  void end(SequenceId /*id*/) override {}
  std::int64_t n_passes() const final { return 0; }
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_INDEX_DRAFTER_H_
