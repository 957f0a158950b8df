// SPDX-License-Identifier: Apache-2.0
// Prints a checksum of the scalar table's results for fixed numbers, slot by slot. Tests compare a
// machine's tables with its scalar table; equal lines from two machines show that the scalar tables
// agree, too (scripts/test-neon). The numbers are made of integers only, so that they do not depend
// on any library.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/attention/kv_layout.h"
#include "kernels/table.h"
#include "kernels/tables.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/prepared_inputs.h"

namespace outrider::kernels {
namespace {

using test::aligned_bytes;
using test::AlignedBytes;

const KernelTable& table = kScalarTable;

// FNV-1a with 64 bits (Fowler, Noll and Vo) over the added values' bytes in memory order.
class Checksum {
 public:
  template <class Element>
  Checksum& add(const std::vector<Element>& elements) {
    for (const Element& element : elements) {
      std::byte bytes[sizeof element];
      std::memcpy(bytes, &element, sizeof element);
      add(bytes, sizeof element);
    }
    return *this;
  }
  Checksum& add(const std::byte* bytes, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      value_ = (value_ ^ std::to_integer<std::uint64_t>(bytes[i])) * 0x100000001b3U;
    }
    return *this;
  }
  void print(const std::string& name) const {
    std::printf("%s %016llx\n", name.c_str(), static_cast<unsigned long long>(value_));
  }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

// Magnitudes from 2^-30 to 2^4, with zeros and subnormals among them.
std::vector<float> floats(int n, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<float> values;
  for (int i = 0; i < n; ++i) {
    const int whole = static_cast<int>(generator() % 65536) - 32768;
    const int exponent = generator() % 32 == 0 ? -140 : -11 - static_cast<int>(generator() % 20);
    values.push_back(std::ldexp(static_cast<float>(whole), exponent));
  }
  return values;
}

template <class Element>
std::vector<Element> integers(int n, unsigned below, int first, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<Element> values;
  for (int i = 0; i < n; ++i) {
    values.push_back(static_cast<Element>(first + static_cast<int>(generator() % below)));
  }
  return values;
}

void print_rows(int n) {
  const std::string of = " of " + std::to_string(n);
  const std::vector<float> x = floats(n, 1);
  const std::vector<float> weight = floats(n, 2);
  const std::vector<float> bias = floats(n, 3);
  std::vector<float> y(x.size());
  table.rms_norm(x.data(), weight.data(), n, 1e-5F, y.data());
  Checksum().add(y).print("rms_norm" + of);
  table.layer_norm(x.data(), weight.data(), bias.data(), n, 1e-5F, y.data());
  Checksum().add(y).print("layer_norm" + of);
  table.silu_multiply(x.data(), weight.data(), n, y.data());
  Checksum().add(y).print("silu_multiply" + of);
  table.clamped_swish_multiply(x.data(), weight.data(), n, 0.5F, y.data());
  Checksum().add(y).print("clamped_swish_multiply" + of);
  table.gelu_multiply(x.data(), weight.data(), n, y.data());
  Checksum().add(y).print("gelu_multiply" + of);
  table.gelu_erf_multiply(x.data(), weight.data(), n, y.data());
  Checksum().add(y).print("gelu_erf_multiply" + of);
  y = x;
  table.soft_cap(y.data(), n, 3.0F);
  Checksum().add(y).print("soft_cap" + of);
  y = x;
  table.apply_rope(y.data(), weight.data(), bias.data(), n / 2);
  Checksum().add(y).print("apply_rope" + of);
  y = x;
  table.add(y.data(), bias.data(), n);
  Checksum().add(y).print("add" + of);

  std::vector<double> weights(x.size());
  std::vector<std::uint16_t> buckets(x.size());
  const SoftmaxArgs softmax{.logits = x.data(),
                            .n = n,
                            .largest = 16,
                            .temperature = 0.7,
                            .weights = weights.data(),
                            .buckets = buckets.data(),
                            .buckets_per_unit = 8,
                            .last_bucket = 200};
  table.softmax_weights(softmax);
  Checksum().add(weights).add(buckets).print("softmax_weights" + of);
  table.logarithms(weights.data(), n);
  Checksum().add(weights).print("logarithms" + of);
  std::vector<double> uniforms(2 * x.size());
  table.philox_uniforms(77, 123, 5, 2, n, uniforms.data());
  Checksum().add(uniforms).print("philox_uniforms" + of);
}

// Multiplies a matrix (32, 512) of one kind by three rows.
void print_product(WeightKind kind, unsigned n_codes) {
  constexpr int kRows = 3;
  constexpr int kColumns = 2 * kTileColumns;
  constexpr int kDepth = 2 * kBlock;
  constexpr int kGroups = kDepth / kGroup;
  const std::string name = name_of(kind);
  const WeightFormat& format = table.format(kind);

  const auto codes = integers<std::uint8_t>(kColumns * kDepth, n_codes, 0, 1);
  const std::vector<float> values = floats(kColumns * kDepth, 2);
  const auto bf16 = integers<std::uint16_t>(kColumns * kDepth, 0x0100, 0x3f00, 3);
  // f16 from 2^-14 to 2^-6.
  const auto scales = integers<std::uint16_t>(kColumns * kGroups, 0x2000, 0x0400, 4);
  const auto minimums = integers<std::uint16_t>(kColumns * kGroups, 0x2000, 0x8400, 5);
  const auto sub_scales = integers<std::int8_t>(kColumns * 2 * kGroups, 16, 0, 6);
  const auto sub_minimums = integers<std::uint8_t>(kColumns * 2 * kGroups, 16, 0, 7);
  const std::vector<float> f32_scales(std::size_t{kColumns} * kGroups, 0x1p-5F);

  const std::size_t tile_bytes = format.tile_bytes(kDepth);
  const AlignedBytes tiles = aligned_bytes(2 * tile_bytes);
  for (std::size_t tile = 0; tile < 2; ++tile) {
    TileSource source{};
    source.k = kDepth;
    for (std::size_t i = 0; i < kTileColumns; ++i) {
      const std::size_t column = tile * kTileColumns + i;
      const std::size_t group = column * kGroups;
      source.values[i] = codes.data() + column * kDepth;
      if (kind == WeightKind::f32) source.values[i] = values.data() + column * kDepth;
      if (kind == WeightKind::bf16) source.values[i] = bf16.data() + column * kDepth;
      source.numbers[i] = {.scales = scales.data() + group,
                           .minimums = minimums.data() + group,
                           .sub_scales = sub_scales.data() + 2 * group,
                           .sub_minimums = sub_minimums.data() + 2 * group,
                           .f32_scales = f32_scales.data() + group};
    }
    format.pack_tile(source, tiles.get() + tile * tile_bytes);
  }
  const std::byte* const packed = tiles.get();
  Checksum().add(packed, 2 * tile_bytes).print("pack " + name);

  const std::vector<float> x = floats(kRows * kDepth, 8);
  const test::PreparedInputs inputs(table, x, kRows, kDepth, 4);
  std::vector<float> y(std::size_t{kRows} * kColumns);
  MatmulArgs args = inputs.args(kRows);
  args.tiles = packed;
  args.n_tiles = 2;
  args.n_columns = kColumns;
  args.x = x.data();
  args.x_stride = kDepth;
  args.y = y.data();
  args.y_stride = kColumns;
  format.matmul(args);
  Checksum().add(y).print("product " + name);
  Checksum().add(inputs.values).add(inputs.scales).add(inputs.scaled_sums).print("quantize_row");
  Checksum()
      .add(inputs.block_values)
      .add(inputs.block_scales)
      .add(inputs.half_sums)
      .print("quantize_blocks");
}

// Two queries over 100 keys and values.
void print_attention(KvKind kind) {
  constexpr int kHeadDim = 20;
  constexpr int kKeys = 100;
  constexpr int kQueries = 2;
  const KvLayout layout{kind, kHeadDim};
  const int at = static_cast<int>(kind);
  const std::string name = std::to_string(layout.element_bytes()) + " bytes an element";

  const std::size_t page_bytes = 2 * layout.block_bytes();
  const AlignedBytes pages = aligned_bytes(2 * page_bytes);
  std::memset(pages.get(), 0, 2 * page_bytes);
  const std::vector<float> keys = floats(kKeys * kHeadDim, 1);
  const std::vector<float> values = floats(kKeys * kHeadDim, 2);
  for (int key = 0; key < kKeys; ++key) {
    std::byte* const page = pages.get() + (key < kChunkKeys ? 0 : page_bytes);
    const int from = key * kHeadDim;
    table.store_key[at](keys.data() + from, kHeadDim, page, key % kChunkKeys);
    table.store_value[at](values.data() + from, kHeadDim, page + layout.block_bytes(),
                          key % kChunkKeys);
  }
  const std::byte* const stored = pages.get();
  Checksum().add(stored, 2 * page_bytes).print("store " + name);

  const std::vector<float> queries = floats(kQueries * kHeadDim, 3);
  std::vector<float> out(queries.size());
  AttendState states[kQueries];
  const AttendRow row{.queries = queries.data(),
                      .out = out.data(),
                      .states = states,
                      .n_keys = kKeys,
                      .first_key = 0,
                      .n_contiguous = kKeys,
                      .slots = nullptr};
  const void* const chunks[] = {stored, stored + page_bytes};
  AttendArgs args{};
  args.rows = &row;
  args.n_rows = 1;
  args.n_queries = kQueries;
  args.query_stride = kHeadDim;
  args.out_stride = kHeadDim;
  args.head_dim = kHeadDim;
  args.scale = 0.25F;
  args.chunks = chunks;
  args.values_at = layout.block_bytes();
  table.attend[at](args);
  table.merge_split(out.data() + kHeadDim, states[1], kHeadDim, out.data(), &states[0]);
  table.finish_attention(states[0], kHeadDim, out.data());
  Checksum().add(out).print("attention " + name);
}

}  // namespace
}  // namespace outrider::kernels

int main() {
  using namespace outrider::kernels;
  for (const int n : {2, 16, 100}) print_rows(n);
  constexpr unsigned kCodes[] = {1, 1, 256, 16, 4, 8, 16, 32, 32, 32, 64, 16, 16, 16};
  static_assert(sizeof kCodes / sizeof kCodes[0] == kWeightKinds);
  for (int kind = 0; kind < kWeightKinds; ++kind) {
    print_product(static_cast<WeightKind>(kind), kCodes[kind]);
  }
  for (const KvKind kind : {KvKind::f32, KvKind::bf16, KvKind::int8}) print_attention(kind);
}
