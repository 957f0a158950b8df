// SPDX-License-Identifier: Apache-2.0
// Synthetic weights of any kind and shape that are cheap to make, for timing products: their time
// does not depend on the values.
#ifndef OUTRIDER_MEASURE_PATTERN_WEIGHTS_H_
#define OUTRIDER_MEASURE_PATTERN_WEIGHTS_H_

#include <cstdint>

#include "tensor/matrix.h"

namespace outrider {

class PatternWeights : public WeightReader {
 public:
  // (n_rows, k). k must be a multiple of 256 if the kind's blocks are that long.
  PatternWeights(WeightKind kind, std::int64_t n_rows, std::int64_t k);

  WeightKind kind() const override { return kind_; }
  std::int64_t n_rows() const override { return n_rows_; }
  std::int64_t k() const override { return k_; }
  void read(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const override;

 private:
  WeightKind kind_;
  std::int64_t n_rows_;
  std::int64_t k_;
  WeightRows rows_;  // of a tile
};

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_PATTERN_WEIGHTS_H_
