// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/bild_sampled.h"

#include "base/elementary.h"
#include "sampling/divergence.h"

namespace outrider {
namespace {

double distance_between(BildSampledRule::Distance distance, const Distribution& draft,
                        const Distribution& target) {
  switch (distance) {
    case BildSampledRule::Distance::total_variation:
      return total_variation(draft, target);
    case BildSampledRule::Distance::kl:
      return kl_divergence(draft, target);
    case BildSampledRule::Distance::jensen_shannon:
      return jensen_shannon(draft, target);
    case BildSampledRule::Distance::surprise:
      break;
  }
  return -portable_log(target.prob(draft.argmax()));
}

}  // namespace

bool BildSampledRule::defers(NodeViews& views, int node) const {
  return distance_between(distance_, *views.raw_draft(node), views.raw_target(node)) > alpha_;
}

}  // namespace outrider
