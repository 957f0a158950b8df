// SPDX-License-Identifier: Apache-2.0
// Operations on one row between the products, on one thread and in cache: bytes read and written
// per second for every table.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench_main.h"
#include "kernels/dispatch.h"

namespace outrider {
namespace {

using kernels::KernelTable;

std::vector<float> row_of(int n) {
  std::vector<float> row;
  for (int i = 0; i < n; ++i) row.push_back(static_cast<float>(i * 7 % 31 - 15) / 8);
  return row;
}

void count_bytes(benchmark::State& state, std::size_t bytes_per_element) {
  state.SetBytesProcessed(state.iterations() * state.range(0) *
                          static_cast<std::int64_t>(bytes_per_element));
}

void rms_norm(benchmark::State& state, const KernelTable& table) {
  const int n = static_cast<int>(state.range(0));
  const std::vector<float> x = row_of(n);
  const std::vector<float> weight(x.size(), 1);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    table.rms_norm(x.data(), weight.data(), n, 1e-5F, y.data());
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  count_bytes(state, 3 * sizeof(float));
}

void silu_multiply(benchmark::State& state, const KernelTable& table) {
  const int n = static_cast<int>(state.range(0));
  const std::vector<float> gate = row_of(n);
  const std::vector<float>& up = gate;
  std::vector<float> out(gate.size());
  for (auto _ : state) {
    table.silu_multiply(gate.data(), up.data(), n, out.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  count_bytes(state, 3 * sizeof(float));
}

void quantize_row(benchmark::State& state, const KernelTable& table) {
  const int n = static_cast<int>(state.range(0));
  const auto n_groups = static_cast<std::size_t>(kernels::groups_of(n));
  const std::vector<float> x = row_of(n);
  // Laid out as the only row of a product.
  const auto n_slots = static_cast<std::size_t>(kernels::row_slots(1));
  std::vector<std::int8_t> values(n_groups * n_slots * kernels::kGroup);
  std::vector<float> scales(n_groups * n_slots);
  std::vector<std::int32_t> sums(n_groups * n_slots);
  std::vector<float> scaled_sums(n_groups * n_slots);
  const kernels::QuantizedRow out{.values = values.data(),
                                  .scales = scales.data(),
                                  .sums = sums.data(),
                                  .scaled_sums = scaled_sums.data(),
                                  .slots = static_cast<int>(n_slots)};
  for (auto _ : state) {
    table.quantize_row(x.data(), n, out);
    benchmark::DoNotOptimize(values.data());
    benchmark::ClobberMemory();
  }
  count_bytes(state, sizeof(float) + sizeof(std::int8_t));
}

}  // namespace

void register_benchmarks() {
  struct Kernel {
    const char* name;
    void (*run)(benchmark::State&, const KernelTable&);
  };
  for (const Kernel& kernel : {Kernel{"rms_norm", rms_norm}, Kernel{"silu_multiply", silu_multiply},
                               Kernel{"quantize_row", quantize_row}}) {
    for (const KernelTable* table : kernels::compiled_tables()) {
      if (!kernels::is_supported(*table)) continue;
      const std::string name = std::string(kernel.name) + "/" + table->name;
      // The widths of TinyLlama and of its gated layer.
      benchmark::RegisterBenchmark(
          name.c_str(), [run = kernel.run, table](benchmark::State& state) { run(state, *table); })
          ->Arg(2048)
          ->Arg(5632);
    }
  }
}

}  // namespace outrider
