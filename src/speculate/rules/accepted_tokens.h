// SPDX-License-Identifier: Apache-2.0
// Shared by rules that decide token by token: the drafter's mass on acceptable tokens stays, and
// the mass of the others goes to the target.
#ifndef OUTRIDER_SPECULATE_RULES_ACCEPTED_TOKENS_H_
#define OUTRIDER_SPECULATE_RULES_ACCEPTED_TOKENS_H_

#include <algorithm>
#include <cstddef>

#include "sampling/distribution.h"

namespace outrider {

// eta: the drafter's mass on tokens that refuses(token).
template <class Refuses>
double refused_mass(const Distribution& draft_prob, const Refuses& refuses) {
  double refused = 0;
  for (std::size_t i = 0; i < draft_prob.ids.size(); ++i) {
    if (refuses(draft_prob.ids[i])) refused += draft_prob.probs[i];
  }
  return std::min(1.0, refused);
}

// out(v) = draft_prob(v) of acceptable v + target_prob(v) eta. If all or none of the drafter's
// tokens are refused, out equals one of the two to the last bit.
template <class Refuses>
void keep_accepted(const Distribution& draft_prob, const Distribution& target_prob,
                   const Refuses& refuses, Distribution& out) {
  double refused = 0;
  bool any_accepted = false;
  for (std::size_t i = 0; i < draft_prob.ids.size(); ++i) {
    if (refuses(draft_prob.ids[i])) {
      refused += draft_prob.probs[i];
    } else {
      any_accepted = true;
    }
  }
  if (!any_accepted) {
    out.assign(target_prob);
    return;
  }
  if (refused <= 0) {
    out.assign(draft_prob);
    return;
  }
  combine(
      draft_prob, target_prob,
      [&](TokenId id, double in_draft, double in_target) {
        const bool accepted = in_draft > 0 && !refuses(id);
        return (accepted ? in_draft : 0.0) + in_target * refused;
      },
      out);
}

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_ACCEPTED_TOKENS_H_
