// One row of logits as the code behind a pass sees it: a handle.
#ifndef OUTRIDER_BASE_LOGIT_ROW_H_
#define OUTRIDER_BASE_LOGIT_ROW_H_

#include <algorithm>
#include <cstddef>
#include <span>

#include "outrider/types.h"

namespace outrider {

// What a model says follows a token: (size) logits. Code that needs the likeliest tokens alone asks
// sampling/transform.h for these; only code that needs a whole row asks for values(), so that a row
// which a device keeps need not be copied for the others. Valid until the next pass into the
// LogitRows that it came from. Not thread-safe.
class LogitRow {
 public:
  LogitRow() = default;
  // The values outlive the handle. A PenalisedRow changes them as long as it lives.
  explicit LogitRow(std::span<float> values) : values_(values) {}

  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  // All of them, in the host's memory.
  std::span<const float> values() const { return values_; }
  float at(TokenId token) const { return values_[static_cast<std::size_t>(token)]; }
  // The logits of the tokens below n_tokens: all of them where there are no more.
  LogitRow first(std::size_t n_tokens) const {
    return LogitRow(values_.first(std::min(n_tokens, size())));
  }

 private:
  friend class PenalisedRow;

  std::span<float> values_;
};

}  // namespace outrider

#endif  // OUTRIDER_BASE_LOGIT_ROW_H_
