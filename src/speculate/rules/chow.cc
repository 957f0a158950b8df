// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/chow.h"

namespace outrider {

bool ChowRule::defers(NodeViews& views, int node) const {
  return expected_loss(*views.raw_draft(node), loss_) > alpha_;
}

}  // namespace outrider
