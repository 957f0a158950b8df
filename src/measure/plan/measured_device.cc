// SPDX-License-Identifier: Apache-2.0
#include "measure/plan/measured_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "measure/pattern_weights.h"
#include "measure/spread.h"
#include "outrider/error.h"
#include "tensor/team.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

// A sample repeats until this time has passed, as for passes (pass_costs.cc).
constexpr double kShortestSample_seconds = 0.05;
// Elements of k per block of a format (src/kernels/formats).
int block_of(WeightKind kind) {
  switch (kind) {
    case WeightKind::q2_k:
    case WeightKind::q3_k:
    case WeightKind::q4_k:
    case WeightKind::q5_k:
    case WeightKind::q6_k:
    case WeightKind::iq4_xs:
      return 256;
    default:
      return kernels::kGroup;
  }
}

int whole_blocks(int k, int block) { return (k + block - 1) / block * block; }

// Rows when measuring the work per row: enough for every thread of a small machine.
constexpr int kRowsOfWork = 16;
// Repetitions before threads meet: in a pass they have met already when this work begins.
constexpr int kTurnsOfWork = 64;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

WeightKind kind_named(std::string_view name) {
  for (int kind = 0; kind < kernels::kWeightKinds; ++kind) {
    if (name == kernels::kWeightNames[kind]) return static_cast<WeightKind>(kind);
  }
  throw Error("check plan", "weights", "a kind of packed weights", name);
}

void fill(Activations& x, const KernelTable& table) {
  for (int row = 0; row < x.n_rows(); ++row) {
    for (int i = 0; i < x.k(); ++i) x.row(row)[i] = static_cast<float>((i * 7 + row) % 31) - 15;
    x.quantize_row(table, row);
  }
}

}  // namespace

MeasuredDevice::MeasuredDevice(const ModelShape& shape, const KernelTable& table, int n_threads)
    : table_(table),
      n_threads_(n_threads),
      shape_(shape),
      read_(
          [&shape] {
            double n_bytes = 0;
            for (const WeightShare& stored : shape.stored) n_bytes += stored.n_bytes;
            return static_cast<std::size_t>(n_bytes);
          }(),
          n_threads) {
  for (const WeightShare& stored : shape.stored) {
    Kind& kind = kinds_.emplace_back();
    kind.kind = kind_named(stored.type);
    kind.narrow = whole_blocks(shape.dim, block_of(kind.kind));
    kind.wide = whole_blocks(shape.hidden_dim, block_of(kind.kind));
    const PatternWeights up(kind.kind, shape.hidden_dim, kind.narrow);
    const PatternWeights down(kind.kind, shape.dim, kind.wide);
    while (kind.n_weights < stored.n_weights) {
      const bool is_down = kind.matrices.size() % 3 == 2;
      const Matrix& added =
          kind.matrices.emplace_back(Matrix::pack(is_down ? down : up, table, n_threads));
      kind.n_weights += static_cast<double>(added.n_columns()) * added.k();
    }
  }
  seconds_.assign(kinds_.size(), std::vector<std::vector<double>>(std::size(kTimedRows)));
}

void MeasuredDevice::measure_next() {
  if (next_ == 0) {
    bandwidths_.push_back(read_.bytes_per_second());
  } else if (next_ == 1) {
    row_rates_.push_back(row_elements_per_second());
  } else {
    measure_products(static_cast<std::size_t>(next_) - 2);
  }
  next_ = (next_ + 1) % kFigures;
}

ActivationForms MeasuredDevice::forms() const {
  ActivationForms forms;
  for (const Kind& kind : kinds_) forms |= kind.matrices.front().reads();
  return forms;
}

// Reads all weights once or several times, and times each format separately.
void MeasuredDevice::measure_products(std::size_t timed) {
  const int n_rows = kTimedRows[timed];
  std::vector<Activations> narrow(kinds_.size());
  std::vector<Activations> wide(kinds_.size());
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    narrow[i].resize(n_rows, kinds_[i].narrow, forms());
    wide[i].resize(n_rows, kinds_[i].wide, forms());
    fill(narrow[i], table_);
    fill(wide[i], table_);
  }
  const int y_stride = std::max(shape_.hidden_dim, shape_.dim);
  std::vector<float> y(static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(y_stride));
  std::vector<double> totals(kinds_.size());
  int n_sweeps = 0;
  double total = 0;
  for (; total < kShortestSample_seconds; ++n_sweeps) {
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      const auto begin = Clock::now();
      run_team(n_threads_, [&](const Team& team) {
        for (const Matrix& matrix : kinds_[i].matrices) {
          const bool is_down = matrix.n_columns() == shape_.dim && matrix.k() == kinds_[i].wide;
          matrix.multiply(team, is_down ? wide[i] : narrow[i], y.data(),
                          static_cast<std::size_t>(y_stride));
          team.barrier();
        }
      });
      const double seconds = seconds_since(begin);
      totals[i] += seconds;
      total += seconds;
    }
  }
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    seconds_[i][timed].push_back(totals[i] / n_sweeps / kinds_[i].n_weights);
  }
}

// One layer's work for kRowsOfWork rows divided among threads: two norms, two sums, the gate, and
// the forms that products read.
double MeasuredDevice::row_elements_per_second() const {
  ModelShape layer = shape_;
  layer.n_layers = 1;
  const double n_elements = (row_elements(layer) - 2.0 * layer.dim) * kRowsOfWork;
  Activations narrow;
  Activations heads;
  Activations wide;
  narrow.resize(kRowsOfWork, layer.dim, forms());
  heads.resize(kRowsOfWork, layer.n_heads * layer.head_dim, forms());
  wide.resize(kRowsOfWork, layer.hidden_dim, forms());
  for (Activations* const x : {&narrow, &heads, &wide}) fill(*x, table_);
  const std::vector<float> ones(static_cast<std::size_t>(layer.dim), 1);
  // A rotation that keeps lengths: shrinking numbers would become subnormal.
  const std::vector<float> cosines(static_cast<std::size_t>(layer.head_dim), 0.6F);
  const std::vector<float> sines(static_cast<std::size_t>(layer.head_dim), 0.8F);
  std::vector<float> up(static_cast<std::size_t>(layer.hidden_dim) * kRowsOfWork, 0.5F);
  constexpr float kEpsilon = 1e-5F;
  constexpr double kSample_seconds = 0.01;  // thousands of repetitions; each round takes a sample
  const auto begin = Clock::now();
  double n_done = 0;
  for (double seconds = 0; seconds < kSample_seconds; seconds = seconds_since(begin)) {
    run_team(n_threads_, [&](const Team& team) {
      const Range rows = team.share(kRowsOfWork);
      const std::int64_t n_shared = rows.end - rows.begin;
      for (std::int64_t turn = 0; turn < n_shared * kTurnsOfWork; ++turn) {
        const auto at = static_cast<int>(rows.begin + turn % n_shared);
        for (int norm = 0; norm < 2; ++norm) {
          table_.rms_norm(narrow.row(at), ones.data(), layer.dim, kEpsilon, narrow.row(at));
          table_.add(narrow.row(at), ones.data(), layer.dim);
          narrow.quantize_row(table_, at);
        }
        for (int head = 0; head < layer.n_heads; ++head) {
          table_.apply_rope(heads.row(at) + static_cast<std::ptrdiff_t>(head) * layer.head_dim,
                            cosines.data(), sines.data(), layer.head_dim / 2);
        }
        heads.quantize_row(table_, at);
        table_.silu_multiply(up.data() + static_cast<std::ptrdiff_t>(at) * layer.hidden_dim,
                             up.data() + static_cast<std::ptrdiff_t>(at) * layer.hidden_dim,
                             layer.hidden_dim, wide.row(at));
        wide.quantize_row(table_, at);
      }
    });
    n_done += n_elements * kTurnsOfWork;
  }
  return n_done / seconds_since(begin);
}

Device MeasuredDevice::device() const {
  Device device;
  device.name = fmt::format("this machine, {} thread{}", n_threads_, n_threads_ == 1 ? "" : "s");
  device.source = fmt::format("measured, kernels {}", table_.name);
  device.bandwidth_bytes_per_second = spread_of(bandwidths_).median;
  device.row_elements_per_second = spread_of(row_rates_).median;
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    for (std::size_t timed = 0; timed < std::size(kTimedRows); ++timed) {
      const double seconds = spread_of(seconds_[i][timed]).median;
      device.products.push_back({.type = kernels::name_of(kinds_[i].kind),
                                 .rows = kTimedRows[timed],
                                 .seconds_per_weight = seconds});
      // The peak: products with the most rows.
      const double ops = 2 * kTimedRows[timed] / seconds;
      double& peak = kinds_[i].kind == WeightKind::f32 || kinds_[i].kind == WeightKind::bf16
                         ? device.bf16_ops_per_second
                         : device.int8_ops_per_second;
      peak = std::max(peak, ops);
    }
  }
  // A placeholder for attention until it is measured.
  if (device.bf16_ops_per_second == 0) device.bf16_ops_per_second = device.int8_ops_per_second;
  return device;
}

}  // namespace outrider
