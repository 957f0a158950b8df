// SPDX-License-Identifier: Apache-2.0
// Attention of one token and of a draft over a context, in all layers of a pass, on one thread.
// Reported are the bytes of keys and values per second, each counted once, and the share of one
// thread's read speed in the same run.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench_main.h"
#include "kernels/attention/whole_attention.h"
#include "kernels/dispatch.h"
#include "measure/stream_read.h"
#include "model/cache/kv_sequence.h"

namespace outrider {
namespace {

// TinyLlama's shape: 32 query heads over 4 key-value heads. A layer's keys and values of 64 tokens
// lie among those of all other layers.
constexpr int kLayers = 22;
constexpr int kHeadDim = 64;
constexpr int kKvHeads = 4;
constexpr int kQueriesPerHead = 8;
constexpr std::size_t kReadBytes = std::size_t{256} << 20;

// A sequence of n_keys tokens in pages laid out as a model's.
std::unique_ptr<KvSequence> make_sequence(kernels::KvKind kv, int n_keys) {
  const std::vector<LayerCache> layers(kLayers, {.n_heads = kKvHeads, .head_dim = kHeadDim});
  const auto cache = std::make_shared<KvCache>(layers, kv);
  auto sequence = std::make_unique<KvSequence>(cache);
  sequence->ensure_slots(n_keys);
  for (int id = 0; id < cache->pool().n_pages(); ++id) {
    // Normal numbers in every type: the values do not affect the time.
    std::memset(cache->store().bytes(id), 0x3F, cache->groups().front().page_bytes());
  }
  return sequence;
}

// All heads of some tokens over the keys and values that they share.
void attend(benchmark::State& state, const kernels::KernelTable& table, kernels::Attend attend_to,
            kernels::KvKind kv) {
  const int n_keys = static_cast<int>(state.range(0));
  const auto n_rows = static_cast<std::size_t>(state.range(1));
  constexpr std::size_t kQueries = std::size_t{kQueriesPerHead} * kHeadDim;
  const auto sequence = make_sequence(kv, n_keys);
  const KvShape& shape = sequence->cache()->shape(0);
  std::vector<const void*> chunks(sequence->n_pages(0));
  const std::vector<float> queries(n_rows * kQueries, 0.5F);
  std::vector<float> out(queries.size());
  std::vector<float> sums(queries.size());
  std::vector<kernels::AttendState> states(2 * n_rows * kQueriesPerHead);
  std::vector<kernels::AttendRow> rows;
  for (std::size_t row = 0; row < n_rows; ++row) {
    rows.push_back({.queries = queries.data() + row * kQueries,
                    .out = out.data() + row * kQueries,
                    .states = nullptr,
                    .n_keys = n_keys,
                    .first_key = 0,
                    .n_contiguous = n_keys,
                    .slots = nullptr});
  }
  const double read = StreamRead(kReadBytes, 1).bytes_per_second();
  const auto begun = std::chrono::steady_clock::now();
  for (auto _ : state) {
    for (int layer = 0; layer < kLayers; ++layer) {
      sequence->chunks(layer, chunks);
      for (int head = 0; head < kKvHeads; ++head) {
        kernels::attend_whole(table, attend_to,
                              {.rows = rows.data(),
                               .n_rows = static_cast<int>(n_rows),
                               .n_queries = kQueriesPerHead,
                               .query_stride = kHeadDim,
                               .out_stride = kHeadDim,
                               .head_dim = kHeadDim,
                               .split = 0,
                               .scale = 0.125F,
                               .chunks = chunks.data(),
                               .keys_at = shape.keys_at(head),
                               .values_at = shape.values_at(head),
                               .scratch = nullptr},
                              {sums.data(), states.data()});
      }
    }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begun;
  const auto bytes =
      state.iterations() * static_cast<std::int64_t>(sequence->cache()->token_bytes()) * n_keys;
  state.SetBytesProcessed(bytes);
  state.counters["share_of_read"] = static_cast<double>(bytes) / (elapsed.count() * read);
}

}  // namespace

void register_benchmarks() {
  for (const kernels::KernelTable* table : kernels::compiled_tables()) {
    if (!kernels::is_supported(*table)) continue;
    const auto add = [&](const std::string& keys, auto attend_to, kernels::KvKind kv) {
      const std::string name = std::string("attend/") + table->name + "/" + keys;
      benchmark::RegisterBenchmark(
          name.c_str(), [=](benchmark::State& state) { attend(state, *table, attend_to, kv); })
          ->ArgNames({"keys", "rows"})
          ->ArgsProduct({{256, 4096, 32768}, {1, kernels::kMaxAttendRows}})
          ->Unit(benchmark::kMillisecond);
    };
    for (const kernels::KvKind kv : {kernels::KvKind::bf16, kernels::KvKind::int8}) {
      add(name_of(kv), table->attend[static_cast<int>(kv)], kv);
    }
    if (table->attend_bf16_pairs != nullptr) {
      add("bf16_pairs", table->attend_bf16_pairs, kernels::KvKind::bf16);
    }
  }
}

}  // namespace outrider
