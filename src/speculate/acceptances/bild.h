// SPDX-License-Identifier: Apache-2.0
// The Big-Little decoder, for temperature 0. With v the drafter's likeliest token, the target takes
// over
//   where the drafter is unsure:   draft(v) < fallback                       (fallback)
//   where the target disagrees:    -log target(v) > rollback                 (rollback)
//   at the end of the window, which is the longest draft.
// Both are raw distributions. Where the target takes over, its likeliest token is emitted. The
// window begins where the last one ended, so the result is no function of the prefix. A StopRule
// that ends drafts at the first token below `fallback` (ConfidenceStop) saves drafter steps and
// changes nothing else.
//
// Source: Kim et al., "Speculative Decoding with Big Little Decoder" (2023), sections 3.2 and 3.3.
#ifndef OUTRIDER_SPECULATE_ACCEPTANCES_BILD_H_
#define OUTRIDER_SPECULATE_ACCEPTANCES_BILD_H_

#include "speculate/acceptances/acceptance.h"

namespace outrider {

// Chains only.
class Bild final : public Acceptance {
 public:
  Bild(double fallback, double rollback) : fallback_(fallback), rollback_(rollback) {}
  std::string_view name() const override { return "bild"; }
  RuleNeeds needs() const override {
    return {.draft_prob = true, .raw_draft = true, .leaf_draft = false, .greedy = true};
  }
  bool prefix_determined() const override { return false; }
  bool chains_only() const override { return true; }
  void verify(const DraftTree& tree, NodeViews& views, Chance& chance,
              Verdict& verdict) const override;

 private:
  bool keeps(NodeViews& views, int node, TokenId token) const;

  double fallback_;
  double rollback_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_ACCEPTANCES_BILD_H_
