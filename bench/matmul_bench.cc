// SPDX-License-Identifier: Apache-2.0
// How close matrix products come to memory speed: bytes of packed weights and operations per
// second, for every kind, table and 1, 4 and 16 rows, beside a plain streaming read in the same
// run. A machine's speed drifts: quote ratios only to the read of the same run.
//
// The weights are as many matrices of 2048 x 5632 as fill 1 GB, so that no cache keeps them from
// one pass to the next. Each pass reads all of them, as a model's forward pass does.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench_main.h"
#include "kernels/dispatch.h"
#include "measure/pattern_weights.h"
#include "measure/stream_read.h"
#include "tensor/matrix.h"
#include "tensor/team.h"

namespace outrider {
namespace {

constexpr int kDepth = 2048;
// OUTRIDER_BENCH_CACHED=1: one small matrix that fits the second-level cache, so that arithmetic
// dominates.
const bool kCached = std::getenv("OUTRIDER_BENCH_CACHED") != nullptr;
const int kColumns = kCached ? 1024 : 5632;
const std::size_t kBytes = kCached ? 1 : std::size_t{1} << 30;
constexpr auto kPerSecond = benchmark::Counter::kIsIterationInvariantRate;

void stream_read(benchmark::State& state) {
  const StreamRead read(kBytes, default_threads());
  for (auto _ : state) benchmark::DoNotOptimize(read.run());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(read.n_bytes()));
}

void multiply(benchmark::State& state, const KernelTable& table, const std::vector<Matrix>& weights,
              int n_rows) {
  Activations x;
  x.resize(n_rows, kDepth, ActivationForms::of(weights.front().kind(), table));
  for (int row = 0; row < n_rows; ++row) {
    for (int i = 0; i < kDepth; ++i) {
      x.row(row)[i] = static_cast<float>((i * 7 + row) % 31) - 15;
    }
    x.quantize_row(table, row);
  }
  std::vector<float> y(static_cast<std::size_t>(n_rows) * kColumns);
  std::size_t bytes = 0;
  for (const Matrix& matrix : weights) bytes += matrix.packed_bytes();
  for (auto _ : state) {
    run_team(default_threads(), [&](const Team& team) {
      for (const Matrix& matrix : weights) {
        matrix.multiply(team, x, y.data(), kColumns);
        team.barrier();
      }
    });
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes));
  const double products = static_cast<double>(weights.size()) * kDepth * kColumns * n_rows;
  state.counters["op"] = benchmark::Counter(2 * products, kPerSecond);
}

}  // namespace

void register_benchmarks() {
  // Packed at first use and freed after the last: four kinds at once would need too much memory.
  static std::vector<std::unique_ptr<std::vector<Matrix>>> kept;
  const auto add_read = [] {
    benchmark::RegisterBenchmark("read", stream_read)->Unit(benchmark::kMillisecond)->UseRealTime();
  };
  add_read();
  for (int kind = 0; kind < kernels::kWeightKinds; ++kind) {
    for (const KernelTable* table : kernels::compiled_tables()) {
      if (!kernels::is_supported(*table)) continue;
      kept.push_back(std::make_unique<std::vector<Matrix>>());
      std::vector<Matrix>* weights = kept.back().get();
      for (const int n_rows : {1, 4, 8, 16, 32, 64}) {
        const std::string name = std::string(kernels::name_of(static_cast<WeightKind>(kind))) +
                                 "/" + table->name + "/" + std::to_string(n_rows);
        benchmark::RegisterBenchmark(
            name.c_str(),
            [=](benchmark::State& state) {
              const PatternWeights reader(static_cast<WeightKind>(kind), kColumns, kDepth);
              std::size_t bytes = 0;
              for (const Matrix& matrix : *weights) bytes += matrix.packed_bytes();
              while (bytes < kBytes) {
                weights->push_back(Matrix::pack(reader, *table, default_threads()));
                bytes += weights->back().packed_bytes();
              }
              multiply(state, *table, *weights, n_rows);
              if (n_rows == 64) weights->clear();
            })
            ->Unit(benchmark::kMillisecond)
            ->UseRealTime();
      }
    }
  }
  add_read();  // Measured again at the end, to show how far the machine's speed drifted.
}

}  // namespace outrider
