// SPDX-License-Identifier: Apache-2.0
// A WeightReader over float rows in memory, rounded to the requested kind when read. For tests and
// benchmarks. Immutable, so thread-safe.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_FLOAT_WEIGHT_READER_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_FLOAT_WEIGHT_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tensor/matrix.h"

namespace outrider::test {

class FloatWeightReader : public WeightReader {
 public:
  // values: (n_rows, k).
  FloatWeightReader(std::vector<float> values, std::int64_t k, WeightKind kind)
      : values_(std::move(values)), k_(k), kind_(kind) {}
  WeightKind kind() const override { return kind_; }
  std::int64_t n_rows() const override { return static_cast<std::int64_t>(values_.size()) / k_; }
  std::int64_t k() const override { return k_; }
  void read(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const override {
    const auto part = std::span(values_).subspan(static_cast<std::size_t>(first_row * k_),
                                                 static_cast<std::size_t>(n_rows * k_));
    quantize_weights(part, n_rows, k_, kind_, rows);
  }

 private:
  std::vector<float> values_;
  std::int64_t k_;
  WeightKind kind_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_FLOAT_WEIGHT_READER_H_
