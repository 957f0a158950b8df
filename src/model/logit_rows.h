// The logits of a pass.
#ifndef OUTRIDER_MODEL_LOGIT_ROWS_H_
#define OUTRIDER_MODEL_LOGIT_ROWS_H_

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "base/logit_row.h"
#include "outrider/types.h"

namespace outrider {

// One row for each row of the pass that requested logits (RowSet). Reused from pass to pass; grows
// only. Not thread-safe.
class LogitRows {
 public:
  int n_rows() const { return n_rows_; }
  int vocabulary_size() const { return vocabulary_size_; }
  LogitRow row(int row) const {
    return LogitRow({values_.data() + offset(row), static_cast<std::size_t>(vocabulary_size_)});
  }

  // All rows, in host memory: (n_rows, vocabulary_size).
  std::span<const float> values() const { return {values_.data(), offset(n_rows_)}; }

  // For drafters: excludes this token in all rows of the pass.
  void forbid(TokenId token) {
    for (int row = 0; row < n_rows_; ++row) {
      values_[offset(row) + static_cast<std::size_t>(token)] =
          -std::numeric_limits<float>::infinity();
    }
  }

  // For models: starts a new pass; returns (n_rows, vocabulary_size) floats to be written.
  float* start_pass(int n_rows, int vocabulary_size) {
    n_rows_ = n_rows;
    vocabulary_size_ = vocabulary_size;
    if (values_.size() < offset(n_rows)) values_.resize(offset(n_rows));
    return values_.data();
  }

 private:
  std::size_t offset(int row) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(vocabulary_size_);
  }

  int n_rows_ = 0;
  int vocabulary_size_ = 0;
  // Mutable: readers of a pass temporarily apply penalties to its rows (PenalisedRow).
  mutable std::vector<float> values_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOGIT_ROWS_H_
