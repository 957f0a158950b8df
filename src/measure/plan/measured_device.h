// This machine as a Device: what its memory, its products and the work of rows take, each measured
// by itself.
#ifndef OUTRIDER_MEASURE_PLAN_MEASURED_DEVICE_H_
#define OUTRIDER_MEASURE_PLAN_MEASURED_DEVICE_H_

#include <iterator>
#include <vector>

#include "measure/stream_read.h"
#include "outrider/speed_plan.h"
#include "tensor/matrix.h"

namespace outrider {

// Rows at which products are timed. Between them lie straight lines, but for the step from 8 to 9,
// where the matrix units begin to be used (src/kernels/amx.cc). Those of int8 begin at 7, where
// they are as fast as what comes before; no rows of their own are timed for that.
inline constexpr int kTimedRows[] = {1, 2, 4, 8, 9, 16, 32};

// Weights of the kinds, numbers and bytes that a model has, so that caches hold as much of them
// from one pass to the next, in matrices of an MLP's shapes: two of (hidden_dim, dim), one of (dim,
// hidden_dim). What a product takes beside its weights is per row of k, so that k matters. Not
// thread-safe; nothing else may compute meanwhile.
class MeasuredDevice {
 public:
  // Packs the weights. The table outlives it. Throws Error where there is no memory.
  MeasuredDevice(const ModelShape& shape, const KernelTable& table, int n_threads);

  // The next figure, in turn: the memory, the products of each number of rows, the rows' own work.
  // So that a machine which drifts does so alike for these and for what is timed between calls.
  void measure_next();
  // Of the medians of all calls; every figure was measured.
  Device device() const;
  static constexpr int kFigures = 2 + static_cast<int>(std::size(kTimedRows));

 private:
  struct Kind {
    WeightKind kind = WeightKind::f32;
    std::vector<Matrix> matrices;
    double n_weights = 0;
    int narrow = 0;  // dim, whole blocks of the kind
    int wide = 0;    // hidden_dim, likewise
  };

  void measure_products(std::size_t timed);
  InputForms forms() const;
  double row_elements_per_second() const;

  const KernelTable& table_;
  int n_threads_;
  ModelShape shape_;
  StreamRead read_;
  std::vector<Kind> kinds_;
  int next_ = 0;  // of kFigures
  std::vector<double> bandwidths_;
  std::vector<double> row_rates_;
  std::vector<std::vector<std::vector<double>>> seconds_;  // (kinds, timed rows, calls) a weight
};

// What one row of a pass reads and writes between products, in numbers.
double row_elements(const ModelShape& shape);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_PLAN_MEASURED_DEVICE_H_
