// SPDX-License-Identifier: Apache-2.0
// The logits of a pass.
#ifndef OUTRIDER_MODEL_LOGIT_ROWS_H_
#define OUTRIDER_MODEL_LOGIT_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/logit_row.h"
#include "outrider/types.h"

namespace outrider {

// One row for each row of the pass that requested logits (RowSet). Reused from pass to pass; grows
// only. A device's rows stay in its memory until they are read. Not thread-safe.
class LogitRows {
 public:
  int n_rows() const { return n_rows_; }
  int vocabulary_size() const { return vocabulary_size_; }
  LogitRow row(int row) const {
    if (distant_ != nullptr) {
      return {*distant_, row, static_cast<std::size_t>(vocabulary_size_)};
    }
    return LogitRow({values_.data() + offset(row), static_cast<std::size_t>(vocabulary_size_)});
  }

  // All rows, in host memory: (n_rows, vocabulary_size).
  std::span<const float> values() const {
    fetch();
    return {values_.data(), offset(n_rows_)};
  }

  // For drafters: excludes this token in all rows of the pass.
  void forbid(TokenId token) {
    fetch();
    for (int row = 0; row < n_rows_; ++row) {
      values_[offset(row) + static_cast<std::size_t>(token)] =
          -std::numeric_limits<float>::infinity();
    }
  }

  // For models: starts a new pass; returns (n_rows, vocabulary_size) floats to be written.
  float* start_pass(int n_rows, int vocabulary_size) {
    distant_ = nullptr;
    n_rows_ = n_rows;
    vocabulary_size_ = vocabulary_size;
    if (values_.size() < offset(n_rows)) values_.resize(offset(n_rows));
    return values_.data();
  }
  // The same for rows that will be on a device.
  void start_pass(int n_rows, int vocabulary_size, std::shared_ptr<DistantRows> rows) {
    n_rows_ = n_rows;
    vocabulary_size_ = vocabulary_size;
    distant_ = std::move(rows);
  }
  // Releases the last pass: none of its rows is read any more.
  void clear() {
    n_rows_ = 0;
    distant_ = nullptr;
  }

 private:
  // Copies all rows into host memory, where they are from then on.
  void fetch() const {
    if (distant_ == nullptr) return;
    if (values_.size() < offset(n_rows_)) values_.resize(offset(n_rows_));
    for (int row = 0; row < n_rows_; ++row) {
      const std::span<const float> from = distant_->values(row);
      std::copy(from.begin(), from.end(),
                values_.begin() + static_cast<std::ptrdiff_t>(offset(row)));
    }
    distant_ = nullptr;
  }
  std::size_t offset(int row) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(vocabulary_size_);
  }

  int n_rows_ = 0;
  int vocabulary_size_ = 0;
  // Mutable: readers of a pass temporarily apply penalties to its rows (PenalisedRow).
  mutable std::vector<float> values_;
  mutable std::shared_ptr<DistantRows> distant_;  // null: the rows are in values_
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOGIT_ROWS_H_
