// SPDX-License-Identifier: Apache-2.0
// This machine as a Device: its memory, its products and the work on rows, each measured
// separately.
#ifndef OUTRIDER_MEASURE_PLAN_MEASURED_DEVICE_H_
#define OUTRIDER_MEASURE_PLAN_MEASURED_DEVICE_H_

#include <iterator>
#include <vector>

#include "measure/stream_read.h"
#include "outrider/speed_plan.h"
#include "tensor/matrix.h"

namespace outrider {

// Rows at which products are timed. Times between them are interpolated linearly, except for the
// step from 8 to 9, where the matrix units come into use (src/kernels/amx.cc). For int8 they do so
// at 7 rows, where they are as fast as the code before; this needs no further point.
inline constexpr int kTimedRows[] = {1, 2, 4, 8, 9, 16, 32};

// Weights of the kinds, numbers and bytes of the model, so that caches hold the same share of them
// between passes. They are in matrices of an MLP's shapes: two of (hidden_dim, dim), one of (dim,
// hidden_dim). The cost of a product besides its weights is per row of k, so k matters. Not
// thread-safe; nothing else may compute meanwhile.
class MeasuredDevice {
 public:
  // Packs the weights. The table must outlive it. Throws Error if there is not enough memory.
  MeasuredDevice(const ModelShape& shape, const KernelTable& table, int n_threads);

  // Measures the next figure, in turn: the memory, the products of each number of rows, the work on
  // rows. So a machine's drift affects these in the same way as what is timed between calls.
  void measure_next();
  // From the medians of all calls; every figure must have been measured.
  Device device() const;
  static constexpr int kFigures = 2 + static_cast<int>(std::size(kTimedRows));

 private:
  struct Kind {
    WeightKind kind = WeightKind::f32;
    std::vector<Matrix> matrices;
    double n_weights = 0;
    int narrow = 0;  // dim, whole blocks of the kind
    int wide = 0;    // hidden_dim, in the same way
  };

  void measure_products(std::size_t timed);
  ActivationForms forms() const;
  double row_elements_per_second() const;

  const KernelTable& table_;
  int n_threads_;
  ModelShape shape_;
  StreamRead read_;
  std::vector<Kind> kinds_;
  int next_ = 0;  // of kFigures
  std::vector<double> bandwidths_;
  std::vector<double> row_rates_;
  std::vector<std::vector<std::vector<double>>> seconds_;  // (kinds, timed rows, calls) per weight
};

// Elements that one row of a pass reads and writes between products.
double row_elements(const ModelShape& shape);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_PLAN_MEASURED_DEVICE_H_
