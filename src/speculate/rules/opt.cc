// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/opt.h"

namespace outrider {

bool OptRule::defers(NodeViews& views, int node) const {
  const double price = alpha_ * total_variation(*views.draft(node), views.target(node));
  return expected_loss(*views.raw_draft(node), loss_) >
         expected_loss(views.raw_target(node), loss_) + price;
}

}  // namespace outrider
