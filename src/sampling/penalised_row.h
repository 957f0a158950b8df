// SPDX-License-Identifier: Apache-2.0
// Applies a request's bias, penalties and grammar to a row of logits, without a copy of the row.
#ifndef OUTRIDER_SAMPLING_PENALISED_ROW_H_
#define OUTRIDER_SAMPLING_PENALISED_ROW_H_

#include <span>
#include <vector>

#include "base/logit_row.h"
#include "sampling/transform.h"

namespace outrider {

// While it exists, the row holds penalised logits (Transform::penalise); afterwards the row is
// restored to the bit. It writes only the logits of tokens in the request's bias, the text or the
// path, and those that the grammar forbids. At most one at a time for a row.
class PenalisedRow {
 public:
  // replaced: storage, overwritten; reused from row to row; must outlive the object.
  PenalisedRow(const Transform& transform, LogitRow row, const TokenHistory& history,
               std::span<const TokenId> path, std::vector<TokenLogit>& replaced);
  ~PenalisedRow();
  PenalisedRow(const PenalisedRow&) = delete;
  PenalisedRow& operator=(const PenalisedRow&) = delete;

  LogitRow row() const { return row_; }

 private:
  LogitRow row_;
  std::span<const TokenLogit> replaced_;
};

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_PENALISED_ROW_H_
