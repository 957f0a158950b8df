// SPDX-License-Identifier: Apache-2.0
// A handle to one row of logits.
#ifndef OUTRIDER_BASE_LOGIT_ROW_H_
#define OUTRIDER_BASE_LOGIT_ROW_H_

#include <algorithm>
#include <cstddef>
#include <span>

#include "outrider/types.h"

namespace outrider {

// Rows of logits that a pass left in a device's memory. Valid until the next pass into the
// LogitRows that owns them (model/logit_rows.h). Not thread-safe.
class DistantRows {
 public:
  virtual ~DistantRows() = default;
  DistantRows(const DistantRows&) = delete;
  DistantRows& operator=(const DistantRows&) = delete;

  // The token of temperature 0, and its logit, bit for bit. It is the first token with the largest
  // logit, as LogitBlocks::likeliest() in sampling/logit_blocks.h computes it.
  struct Likeliest {
    TokenId token = kNoToken;
    float logit = 0;
  };
  virtual Likeliest likeliest(int row) const = 0;
  // All logits of a row, in host memory. The first call copies them from the device. Throws Error
  // if the device is lost.
  virtual std::span<float> values(int row) = 0;

 protected:
  DistantRows() = default;
};

// A model's logits (size) of the next token, indexed by token id. Code that needs only the
// likeliest token calls likeliest_token() of sampling/transform.h: it need not copy a device's row.
// Code that needs a whole row calls values(). Valid until the next pass into the LogitRows that
// owns the row. Not thread-safe.
class LogitRow {
 public:
  LogitRow() = default;
  // The values must outlive the handle. A PenalisedRow (sampling/penalised_row.h) writes to them,
  // and its destructor restores them.
  explicit LogitRow(std::span<float> values) : values_(values), size_(values.size()) {}
  // A row of `size` logits on a device; rows must outlive the handle.
  LogitRow(DistantRows& rows, int row, std::size_t size) : rows_(&rows), row_(row), size_(size) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // All of them, in host memory; a device's row is copied there first. Throws Error if the device
  // is lost.
  std::span<const float> values() const { return in_host_memory(); }
  // The logit of one token. `token` must be from 0 to size - 1. It copies a device's row, unless
  // the token is the likeliest one.
  float at(TokenId token) const {
    if (rows_ != nullptr) {
      const DistantRows::Likeliest likeliest = rows_->likeliest(row_);
      if (likeliest.token == token) return likeliest.logit;
    }
    return in_host_memory()[static_cast<std::size_t>(token)];
  }
  // The token of temperature 0 if a device has found it already. kNoToken for a row in host memory,
  // and if first() has cut that token off.
  TokenId known_likeliest() const {
    if (rows_ == nullptr) return kNoToken;
    const TokenId token = rows_->likeliest(row_).token;
    return static_cast<std::size_t>(token) < size_ ? token : kNoToken;
  }
  // The logits of the tokens below n_tokens, or all if there are fewer.
  LogitRow first(std::size_t n_tokens) const {
    LogitRow row = *this;
    row.size_ = std::min(n_tokens, size_);
    return row;
  }

 private:
  friend class PenalisedRow;

  std::span<float> in_host_memory() const {
    return (rows_ == nullptr ? values_ : rows_->values(row_)).first(size_);
  }

  std::span<float> values_;
  DistantRows* rows_ = nullptr;
  int row_ = 0;
  std::size_t size_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_BASE_LOGIT_ROW_H_
