// SPDX-License-Identifier: Apache-2.0
// Typical acceptance: a drafted token x is accepted where the target finds it plausible:
//   target_prob(x) > min(epsilon, delta * exp(-entropy(target_prob))).
// The longest path of plausible tokens is accepted; among equals, the likeliest. The token after it
// is drawn from the target. The result depends on the draft and on later tokens, so this is no
// rule. At temperature 0 it accepts exactly the target's own tokens.
//
// Source: Cai et al., "Medusa" (2024), section 2.3.1. Distributions are the transformed ones, so a
// token cut off by top-k or top-p is never plausible.
#ifndef OUTRIDER_SPECULATE_ACCEPTANCES_TYPICAL_H_
#define OUTRIDER_SPECULATE_ACCEPTANCES_TYPICAL_H_

#include "speculate/acceptances/acceptance.h"

namespace outrider {

class Typical final : public Acceptance {
 public:
  Typical(double epsilon, double delta) : epsilon_(epsilon), delta_(delta) {}
  std::string_view name() const override { return "typical"; }
  bool prefix_determined() const override { return false; }
  void verify(const DraftTree& tree, NodeViews& views, Chance& chance,
              Verdict& verdict) const override;

 private:
  double epsilon_;
  double delta_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_ACCEPTANCES_TYPICAL_H_
