// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/diff.h"

namespace outrider {

bool DiffRule::defers(NodeViews& views, int node) const {
  return expected_loss(*views.raw_draft(node), loss_) >
         expected_loss(views.raw_target(node), loss_) + alpha_;
}

}  // namespace outrider
