// A request's bias, penalties and grammar on a row of logits, without a copy of the row.
#ifndef OUTRIDER_SAMPLING_PENALISED_ROW_H_
#define OUTRIDER_SAMPLING_PENALISED_ROW_H_

#include <span>
#include <vector>

#include "base/logit_row.h"
#include "sampling/transform.h"

namespace outrider {

// As long as it lives, the row holds penalised logits (Transform::penalise); afterwards it holds
// what it did before, to the bit. Only the logits of tokens that the request's bias, the text or
// the path name are written, and those that its grammar forbids. Where there are none of these
// nothing is. One at a time on a row.
class PenalisedRow {
 public:
  // replaced: storage, overwritten; reused from row to row, it outlives the object.
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
