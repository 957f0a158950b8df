// SPDX-License-Identifier: Apache-2.0
#include "device/host/host_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "device/row_steps.h"
#include "kernels/tables.h"

namespace outrider::device {
namespace {

using kernels::kScalarTable;
using Ranges = std::span<std::byte* const>;

float* row_of(std::byte* range, int row, std::uint32_t stride) {
  return reinterpret_cast<float*>(range) + static_cast<std::size_t>(row) * stride;
}

void run_norm(const Step& step, Ranges ranges) {
  const auto numbers = step.numbers_as<PieceNumbers>();
  const int n_rows = rows_of(ranges[0], numbers.max_rows);
  for (int row = 0; row < n_rows; ++row) {
    float* x = row_of(ranges[1], row, numbers.stride) + numbers.first;
    const float* weight = row_of(ranges[2], 0, 0);
    for (std::uint32_t piece = 0; piece < numbers.n_pieces; ++piece) {
      kScalarTable.rms_norm(x, weight, static_cast<int>(numbers.n), numbers.epsilon, x);
      x += numbers.n;
      weight += numbers.weight_step;
    }
  }
}

void run_gate(const Step& step, Ranges ranges) {
  const auto numbers = step.numbers_as<GateNumbers>();
  const int n_rows = rows_of(ranges[0], numbers.max_rows);
  const auto activation = static_cast<GateActivation>(step.variant);
  const auto multiply = activation == GateActivation::silu        ? kScalarTable.silu_multiply
                        : activation == GateActivation::gelu_tanh ? kScalarTable.gelu_multiply
                                                                  : kScalarTable.gelu_erf_multiply;
  const std::vector<float> ones(numbers.n, 1.0F);
  const bool has_up = step.kernel == Kernel::gate;  // otherwise in place
  for (int row = 0; row < n_rows; ++row) {
    multiply(row_of(ranges[1], row, numbers.n),
             has_up ? row_of(ranges[2], row, numbers.n) : ones.data(), static_cast<int>(numbers.n),
             row_of(ranges[has_up ? 3 : 1], row, numbers.n));
  }
}

void run_add(const Step& step, Ranges ranges) {
  const auto numbers = step.numbers_as<AddNumbers>();
  const int n_rows = rows_of(ranges[0], numbers.max_rows);
  for (int row = 0; row < n_rows; ++row) {
    kScalarTable.add(row_of(ranges[1], row, numbers.n), row_of(ranges[2], row, numbers.n),
                     static_cast<int>(numbers.n));
  }
}

void run_columns(const Step& step, Ranges ranges) {
  const auto numbers = step.numbers_as<ColumnNumbers>();
  const int n_rows = rows_of(ranges[0], numbers.max_rows);
  for (int row = 0; row < n_rows; ++row) {
    float* const x = row_of(ranges[1], row, numbers.stride) + numbers.first;
    if (step.kernel == Kernel::add_bias) {
      kScalarTable.add(x, row_of(ranges[2], 0, 0), static_cast<int>(numbers.n));
    } else {
      for (std::uint32_t i = 0; i < numbers.n; ++i) x[i] *= numbers.scale;
    }
  }
}

void run_cap(const Step& step, Ranges ranges) {
  const auto numbers = step.numbers_as<CapNumbers>();
  const int n_rows = rows_of(ranges[0], numbers.max_rows);
  for (int row = 0; row < n_rows; ++row) {
    kScalarTable.soft_cap(row_of(ranges[1], row, numbers.n), static_cast<int>(numbers.n),
                          numbers.cap);
  }
}

void run_copy(const Step& step, Ranges ranges) {
  const auto numbers = step.numbers_as<CopyNumbers>();
  const int n_rows = rows_of(ranges[0], numbers.max_rows);
  for (int row = 0; row < n_rows; ++row) {
    std::uint32_t from = static_cast<std::uint32_t>(row);
    if (numbers.picks != 0) std::memcpy(&from, ranges[1] + std::size_t{from} * 4, sizeof from);
    std::memcpy(row_of(ranges[3], row, numbers.to_stride) + numbers.to_first,
                row_of(ranges[2], static_cast<int>(from), numbers.from_stride) + numbers.from_first,
                numbers.n * sizeof(float));
  }
}

// For BestOfRow only.
bool is_better(const BestOfRow& one, const BestOfRow& other) {
  const auto a = std::bit_cast<float>(one.bits);
  const auto b = std::bit_cast<float>(other.bits);
  return !std::isnan(a) && (std::isnan(b) || a > b);
}

void run_best(const Step& step, Ranges ranges) {
  const auto numbers = step.numbers_as<BestNumbers>();
  const auto n_rows = static_cast<std::uint32_t>(rows_of(ranges[0], numbers.max_rows));
  const bool reads_parts = step.variant != 0;
  const auto candidate = [&](std::uint32_t row, std::uint32_t i) {
    const std::size_t at = std::size_t{row} * numbers.n + i;
    BestOfRow its = {i, 0};
    if (reads_parts) {
      std::memcpy(&its, ranges[1] + at * sizeof its, sizeof its);
    } else {
      std::memcpy(&its.bits, ranges[1] + at * sizeof its.bits, sizeof its.bits);
    }
    return its;
  };
  for (std::uint32_t row = 0; row < n_rows; ++row) {
    for (std::uint32_t part = 0; part < numbers.n_parts; ++part) {
      const std::uint32_t begin = part * numbers.part;
      const std::uint32_t end = std::min(begin + numbers.part, numbers.n);
      BestOfRow best = candidate(row, begin);
      for (std::uint32_t i = begin + 1; i < end; ++i) {
        const BestOfRow other = candidate(row, i);
        if (is_better(other, best)) best = other;
      }
      std::memcpy(ranges[2] + (std::size_t{row} * numbers.n_parts + part) * sizeof best, &best,
                  sizeof best);
    }
  }
}

}  // namespace

void run_rows_on_host(const Step& step, std::span<std::byte* const> ranges) {
  switch (step.kernel) {
    case Kernel::norm_in_place:
      return run_norm(step, ranges);
    case Kernel::gate:
    case Kernel::activate:
      return run_gate(step, ranges);
    case Kernel::add_rows:
      return run_add(step, ranges);
    case Kernel::add_bias:
    case Kernel::scale_rows:
      return run_columns(step, ranges);
    case Kernel::copy_rows:
      return run_copy(step, ranges);
    case Kernel::cap_rows:
      return run_cap(step, ranges);
    case Kernel::best_of_rows:
      return run_best(step, ranges);
    default:
      return;
  }
}

}  // namespace outrider::device
