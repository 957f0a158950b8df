// SPDX-License-Identifier: Apache-2.0
// The kernel tables for tests of kernels, and inputs for them.
#ifndef OUTRIDER_TESTS_SUPPORT_KERNEL_TABLES_H_
#define OUTRIDER_TESTS_SUPPORT_KERNEL_TABLES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/table.h"
#include "kernels/tables.h"
#include "tests/support/nightly.h"
#include "tests/support/tile_emulator.h"

namespace outrider::test {

struct NamedTable {
  std::string name;
  const kernels::KernelTable* table;
};

#if defined(__x86_64__)
// Whether the processor has every feature that the amx table requires (kernels/dispatch.cc), except
// the tiles.
inline bool has_all_but_tiles() {
  const kernels::KernelTable& avx512 = *kernels::find_table("avx512");
  constexpr int kInt8 = static_cast<int>(kernels::WeightKind::int8);
  return kernels::is_supported(avx512) &&
         avx512.formats[kInt8].matmul != kernels::kAvx512Table.formats[kInt8].matmul;
}

// The avx512 table with the products that it would have on another maker's processors.
inline const kernels::KernelTable& avx512_of_others() {
  static const kernels::KernelTable others = [] {
    using namespace kernels;
    KernelTable table = *find_table("avx512");
    auto& int8 = table.formats[static_cast<int>(WeightKind::int8)].matmul;
    auto& int4 = table.formats[static_cast<int>(WeightKind::int4)].matmul;
    const bool side_by_side = int8 == matmul_int8_vnni_side_by_side;
    int8 = side_by_side ? matmul_int8_vnni : matmul_int8_vnni_side_by_side;
    int4 = side_by_side ? matmul_int4_vnni : matmul_int4_vnni_side_by_side;
    return table;
  }();
  return others;
}
#endif

// Every table that this machine can run. avx512 is also listed without VNNI and BF16 and as on
// another maker's processors; amx with emulated tiles if only the tiles are missing; neon also
// without I8MM.
inline std::vector<NamedTable> runnable_tables() {
  std::vector<NamedTable> tables;
  for (const kernels::KernelTable* table : kernels::compiled_tables()) {
    if (!kernels::is_supported(*table)) continue;
    tables.push_back({table->name, table});
#if defined(__x86_64__)
    if (tables.back().name == "avx512") {
      tables.push_back({"avx512 without vnni and bf16", &kernels::kAvx512Table});
      if (has_all_but_tiles()) tables.push_back({"avx512 of others", &avx512_of_others()});
    }
#elif defined(__aarch64__)
    if (tables.back().name == "neon") {
      tables.push_back({"neon without i8mm", &kernels::kNeonTable});
    }
#endif
  }
#if defined(__x86_64__)
  if (!kernels::is_supported(kernels::kAmxTable) && has_all_but_tiles() && emulate_tiles()) {
    tables.push_back({"amx emulated", &kernels::kAmxTable});
  }
#endif
  return tables;
}

// The same, with the slow ones last: the plain one, then emulated tiles. (Of cases that serve
// equally, pairs_of_the_day.h takes the first.)
inline std::vector<NamedTable> quick_tables_first() {
  std::vector<NamedTable> tables = runnable_tables();
  std::stable_partition(tables.begin(), tables.end(), [](const NamedTable& one) {
    return one.name != "scalar" && one.name != "amx emulated";
  });
  return tables;
}

// Tables for proofs of whole models: the plain one and the fastest; in nightly runs every table.
// The tests of src/kernels always compare each table with the plain one, and a model uses all
// tables through the same code.
inline std::vector<NamedTable> tables_of_the_day() {
  std::vector<NamedTable> tables = quick_tables_first();
  if (test::nightly()) return tables;
  std::erase_if(tables, [](const NamedTable& one) {
    return one.name != "scalar" && one.table != &kernels::best_table();
  });
  return tables;
}

// Emulated tiles, which are too slow for every proof in normal runs: a suite adds a part of its
// parameters with them. Their products divide rows into other blocks than the other tables' do.
// Empty in nightly runs, where tables_of_the_day() has them, and on processors with real tiles.
inline std::vector<NamedTable> emulated_tiles_of_the_day() {
  std::vector<NamedTable> tables = runnable_tables();
  std::erase_if(
      tables, [](const NamedTable& one) { return test::nightly() || one.name != "amx emulated"; });
  return tables;
}

// Normally distributed, with a few zeros, subnormals and large values.
inline std::vector<float> awkward_floats(std::size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) {
    value = normal(generator);
    switch (generator() % 32) {
      case 0:
        value = 0;
        break;
      case 1:
        value *= 1e-39F;
        break;
      case 2:
        value *= 100;
        break;
      default:
        break;
    }
  }
  return values;
}

// The same bits, including NaN payloads and signs of zero.
template <class Element>
bool same_bits(const std::vector<Element>& a, const std::vector<Element>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Element)) == 0);
}

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using AlignedBytes = std::unique_ptr<std::byte, FreeMemory>;

// 64-byte aligned; n_bytes is a multiple of 64.
inline AlignedBytes aligned_bytes(std::size_t n_bytes) {
  return AlignedBytes(static_cast<std::byte*>(std::aligned_alloc(64, n_bytes)));
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_KERNEL_TABLES_H_
