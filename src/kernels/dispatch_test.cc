// SPDX-License-Identifier: Apache-2.0
#include "kernels/dispatch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "tests/support/kernel_tables.h"

namespace outrider::kernels {
namespace {

TEST(Dispatch, ScalarComesFirstAndRunsEverywhere) {
  ASSERT_FALSE(compiled_tables().empty());
  EXPECT_EQ(compiled_tables()[0], &kScalarTable);
  EXPECT_TRUE(is_supported(kScalarTable));
}

TEST(Dispatch, FindsEachTableByItsName) {
  std::set<std::string> names;
  for (const KernelTable* table : compiled_tables()) {
    EXPECT_TRUE(names.insert(table->name).second) << table->name;
    EXPECT_EQ(find_table(table->name), table);
  }
  EXPECT_EQ(find_table("sse9"), nullptr);
  EXPECT_EQ(find_table(""), nullptr);
}

TEST(Dispatch, TheBestIsTheLastSupported) {
  const KernelTable* last = nullptr;
  for (const KernelTable* table : compiled_tables()) {
    if (is_supported(*table)) last = table;
  }
  EXPECT_EQ(&best_table(), last);
}

// For file formats the amx table multiplies like the avx512 one with VNNI.
bool share_products_of_files([[maybe_unused]] const KernelTable& a,
                             [[maybe_unused]] const KernelTable& b) {
#if defined(__x86_64__)
  return &a == &kAmxTable || &b == &kAmxTable;
#else
  return false;
#endif
}

// Tables agree in every bit, so only the code addresses show that forcing one has an effect.
TEST(Dispatch, TablesShareNoCodeButThePacking) {
  const auto tables = compiled_tables();
  for (const KernelTable* a : tables) {
    for (const KernelTable* b : tables) {
      if (a == b) continue;
      for (int kind = 0; kind < kWeightKinds; ++kind) {
        if (share_products_of_files(*a, *b) && kind > static_cast<int>(WeightKind::int4)) continue;
        EXPECT_NE(a->formats[kind].matmul, b->formats[kind].matmul) << kWeightNames[kind];
      }
      EXPECT_NE(a->quantize_row, b->quantize_row);
      EXPECT_NE(a->rms_norm, b->rms_norm);
      EXPECT_NE(a->apply_rope, b->apply_rope);
      EXPECT_NE(a->silu_multiply, b->silu_multiply);
      EXPECT_NE(a->clamped_swish_multiply, b->clamped_swish_multiply);
      EXPECT_NE(a->soft_cap, b->soft_cap);
      EXPECT_NE(a->layer_norm, b->layer_norm);
      EXPECT_NE(a->gelu_erf_multiply, b->gelu_erf_multiply);
      EXPECT_NE(a->add, b->add);
      for (int kind = 0; kind < kKvKinds; ++kind) {
        EXPECT_NE(a->store_key[kind], b->store_key[kind]);
        EXPECT_NE(a->store_value[kind], b->store_value[kind]);
      }
      for (int kind = 0; kind < kKvKinds; ++kind) EXPECT_NE(a->attend[kind], b->attend[kind]);
      EXPECT_NE(a->merge_split, b->merge_split);
      EXPECT_NE(a->finish_attention, b->finish_attention);
      if (a->attend_bf16_pairs != nullptr) {
        EXPECT_NE(a->attend_bf16_pairs, b->attend_bf16_pairs);
      }
    }
  }
}

TEST(Dispatch, NoSlotIsEmpty) {
  for (const KernelTable* table : compiled_tables()) {
    for (int kind = 0; kind < kWeightKinds; ++kind) {
      EXPECT_NE(table->formats[kind].tile_bytes, nullptr);
      EXPECT_NE(table->formats[kind].pack_tile, nullptr);
      EXPECT_NE(table->formats[kind].matmul, nullptr);
    }
    for (int kind = 0; kind < kKvKinds; ++kind) {
      EXPECT_NE(table->store_key[kind], nullptr);
      EXPECT_NE(table->store_value[kind], nullptr);
      EXPECT_NE(table->attend[kind], nullptr);
    }
    EXPECT_EQ(table->attend_bf16_pairs == nullptr, table->round_row == nullptr);
    EXPECT_NE(table->soft_cap, nullptr);
    EXPECT_NE(table->clamped_swish_multiply, nullptr);
    EXPECT_NE(table->layer_norm, nullptr);
    EXPECT_NE(table->gelu_erf_multiply, nullptr);
    EXPECT_NE(table->merge_split, nullptr);
    EXPECT_NE(table->finish_attention, nullptr);
  }
}

// The kernels' tests run every table that this machine can; this test names the others.
class CompiledTable : public ::testing::TestWithParam<const KernelTable*> {};

TEST_P(CompiledTable, IsAmongThoseThatTheTestsRun) {
  const KernelTable& table = *GetParam();
  const auto tables = test::runnable_tables();
  if (!is_supported(table)) {
    const bool emulated = std::any_of(tables.begin(), tables.end(),
                                      [&](const auto& entry) { return entry.table == &table; });
    GTEST_SKIP() << "kernels '" << table.name << "' are not tested"
                 << (emulated ? " but with emulated tiles" : "")
                 << ": this processor or system cannot run them";
  }
  EXPECT_TRUE(std::any_of(tables.begin(), tables.end(),
                          [&](const auto& entry) { return entry.name == table.name; }));
}

INSTANTIATE_TEST_SUITE_P(All, CompiledTable,
                         ::testing::ValuesIn(compiled_tables().begin(), compiled_tables().end()),
                         [](const auto& test) { return std::string(test.param->name); });

#if defined(__x86_64__) && defined(__GNUC__)
// The compiler's runtime detects features in another way.
TEST(Dispatch, AgreesWithTheCompilersRuntime) {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq");
  EXPECT_EQ(is_supported(*find_table("avx2")), avx2);
  EXPECT_EQ(is_supported(*find_table("avx512")), avx512);
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  const KernelTable& listed = *find_table("avx512");
  const bool intel = __builtin_cpu_is("intel");
  EXPECT_EQ(listed.format(WeightKind::int8).matmul,
            vnni ? (intel ? matmul_int8_vnni_side_by_side : matmul_int8_vnni)
                 : kAvx512Table.format(WeightKind::int8).matmul);
  EXPECT_EQ(listed.format(WeightKind::int4).matmul,
            vnni ? (intel ? matmul_int4_vnni_side_by_side : matmul_int4_vnni)
                 : kAvx512Table.format(WeightKind::int4).matmul);
  EXPECT_EQ(
      listed.format(WeightKind::q4_k).matmul,
      vnni ? matmul_stored_vnni<WeightKind::q4_k> : kAvx512Table.format(WeightKind::q4_k).matmul);
  const bool bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
  EXPECT_EQ(listed.format(WeightKind::bf16).matmul == matmul_bf16_pairs, bf16);
  EXPECT_EQ(listed.round_row == round_row_to_pairs, bf16);
  EXPECT_EQ(listed.attend_bf16_pairs == attend_bf16_pairs, bf16);
  EXPECT_EQ(listed.attend[static_cast<int>(KvKind::int8)] == attend_int8_vnni, vnni);
  EXPECT_EQ(listed.attend[static_cast<int>(KvKind::bf16)],
            kAvx512Table.attend[static_cast<int>(KvKind::bf16)]);
}
#endif

#if defined(__aarch64__) && defined(__linux__)
// The processor's own registers, which Linux lets programs read: four bits each at `shift`, above 0
// if the instruction exists (Arm Architecture Reference Manual, ID_AA64ISAR0_EL1.DP and
// ID_AA64ISAR1_EL1.I8MM).
bool has_feature(unsigned long id_register, int shift) { return (id_register >> shift & 15) != 0; }

TEST(Dispatch, AgreesWithTheProcessorsRegisters) {
  unsigned long isar0 = 0;
  unsigned long isar1 = 0;
  __asm__("mrs %0, S3_0_C0_C6_0" : "=r"(isar0));
  __asm__("mrs %0, S3_0_C0_C6_1" : "=r"(isar1));
  const bool neon = has_feature(isar0, 44);
  const bool i8mm = neon && has_feature(isar1, 52);
  const KernelTable& listed = *find_table("neon");
  EXPECT_EQ(is_supported(listed), neon);
  EXPECT_EQ(listed.format(WeightKind::int8).matmul,
            i8mm ? matmul_int8_i8mm : kNeonTable.format(WeightKind::int8).matmul);
  EXPECT_EQ(listed.format(WeightKind::int4).matmul,
            i8mm ? matmul_int4_i8mm : kNeonTable.format(WeightKind::int4).matmul);
  EXPECT_EQ(
      listed.format(WeightKind::q4_k).matmul,
      i8mm ? matmul_stored_i8mm<WeightKind::q4_k> : kNeonTable.format(WeightKind::q4_k).matmul);
}
#endif

}  // namespace
}  // namespace outrider::kernels
