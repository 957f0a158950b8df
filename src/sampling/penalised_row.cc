// SPDX-License-Identifier: Apache-2.0
#include "sampling/penalised_row.h"

#include <cstddef>

namespace outrider {

PenalisedRow::PenalisedRow(const Transform& transform, LogitRow row, const TokenHistory& history,
                           std::span<const TokenId> path, std::vector<TokenLogit>& replaced)
    : row_(row) {
  replaced.clear();
  if (!transform.changes_logits(history)) return;
  // The device's likeliest token does not hold for modified logits.
  row_ = LogitRow(row.in_host_memory());
  transform.penalise(row_.values_, history, path, &replaced);
  replaced_ = replaced;
}

PenalisedRow::~PenalisedRow() {
  // Backwards: for a token that was written twice, the first saved logit is the row's own.
  for (std::size_t i = replaced_.size(); i-- > 0;) {
    row_.values_[static_cast<std::size_t>(replaced_[i].token)] = replaced_[i].logit;
  }
}

}  // namespace outrider
