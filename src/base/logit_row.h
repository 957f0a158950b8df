// A handle to one row of logits.
#ifndef OUTRIDER_BASE_LOGIT_ROW_H_
#define OUTRIDER_BASE_LOGIT_ROW_H_

#include <algorithm>
#include <cstddef>
#include <span>

#include "outrider/types.h"

namespace outrider {

// A model's logits (size) of the next token. Code that needs only the likeliest tokens calls
// sampling/transform.h; only code that needs a whole row calls values(). So a row that a device
// holds need not be copied for the former. Valid until the next pass into its LogitRows. Not
// thread-safe.
class LogitRow {
 public:
  LogitRow() = default;
  // The values must outlive the handle. A PenalisedRow changes them during its lifetime.
  explicit LogitRow(std::span<float> values) : values_(values) {}

  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  // All of them, in host memory.
  std::span<const float> values() const { return values_; }
  float at(TokenId token) const { return values_[static_cast<std::size_t>(token)]; }
  // The logits of the tokens below n_tokens, or all if there are fewer.
  LogitRow first(std::size_t n_tokens) const {
    return LogitRow(values_.first(std::min(n_tokens, size())));
  }

 private:
  friend class PenalisedRow;

  std::span<float> values_;
};

}  // namespace outrider

#endif  // OUTRIDER_BASE_LOGIT_ROW_H_
