// SPDX-License-Identifier: Apache-2.0
// The Big-Little decoder's rollback as a cascade that can be sampled from: defer where the raw
// distributions of the two models differ by more than alpha,
//   D(draft, target) > alpha.
// Distances: surprise, -log target(argmax draft), as in the Big-Little decoder; tv, total
// variation; kl, KL(draft || target); js, Jensen-Shannon.
//
// Source: Kim et al., "Speculative Decoding with Big Little Decoder" (2023), in the form of
// Narasimhan et al. 2024, table 1 and appendix F. (bild.h has the deterministic original.)
#ifndef OUTRIDER_SPECULATE_RULES_BILD_SAMPLED_H_
#define OUTRIDER_SPECULATE_RULES_BILD_SAMPLED_H_

#include "speculate/rules/cascade_rule.h"

namespace outrider {

class BildSampledRule final : public DeferralRule {
 public:
  enum class Distance { surprise, total_variation, kl, jensen_shannon };
  BildSampledRule(double alpha, Distance distance) : alpha_(alpha), distance_(distance) {}
  const char* name() const override { return "bild-sampled"; }

 private:
  bool defers(NodeViews& views, int node) const override;

  double alpha_;
  Distance distance_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_BILD_SAMPLED_H_
