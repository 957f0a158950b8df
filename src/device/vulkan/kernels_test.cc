// SPDX-License-Identifier: Apache-2.0
// Compares kernels of Vulkan devices with the scalar table, byte by byte, in every tier.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/trials/attend_trial.h"
#include "device/trials/cache_trials.h"
#include "device/trials/row_trials.h"
#include "device/trials/trials.h"
#include "device/vulkan/test_devices.h"
#include "tests/support/nightly.h"

namespace outrider::device {
namespace {

using kernels::WeightKind;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Tier {
  const char* name;
  VulkanChoice choice;
};
constexpr Tier kTiers[] = {
    {"Best", {}},
    {"PlainWords", {.uses_dots = false}},
    {"Integers", {.uses_dots = false, .uses_double = false, .uses_native_arithmetic = false}},
};

// A single row, one row more and less than are processed together, and programs recorded for more
// rows.
constexpr TrialRows kRows[] = {{1, 1},   {2, 2},  {3, 4}, {4, 4},   {5, 8},   {8, 8},  {9, 16},
                               {16, 16}, {1, 64}, {0, 8}, {17, 32}, {33, 64}, {64, 64}};

// Of these, for kernels in which rows have nothing in common.
constexpr TrialRows kFewRows[] = {{1, 1}, {5, 8}, {0, 2}, {17, 32}, {64, 64}};

// Without dots of bytes products are other kernels, and no others are (KernelFacts::has_dots): by
// day that tier is for products alone.
std::vector<Tier> tiers_of_the_day() {
  std::vector<Tier> tiers(std::begin(kTiers), std::end(kTiers));
  if (!test::nightly()) {
    std::erase_if(tiers, [](const Tier& tier) { return tier.name == std::string("PlainWords"); });
  }
  return tiers;
}

class VulkanKernels : public ::testing::TestWithParam<Tier> {
 protected:
  void SetUp() override {
    device_ = test_device(GetParam().choice);
    if (device_ == nullptr) GTEST_SKIP() << why_no_test_device();
  }

  // By day tiers other than the first have few rows: what they change is within an element.
  static std::span<const TrialRows> rows_of_the_day() {
    const bool has_all = GetParam().name == std::string("Best") || test::nightly();
    return has_all ? std::span<const TrialRows>(kRows) : std::span<const TrialRows>(kFewRows);
  }

  void expect_same_bits(const Trial& trial, const TrialRows& rows) {
    EXPECT_EQ(difference_from_host(*device_, trial), "")
        << rows.n << " of " << rows.max_rows << " rows on " << device_->facts().name << " ("
        << device_->facts().tier << ")";
  }

  std::unique_ptr<VulkanDevice> device_;
};

class VulkanProducts : public VulkanKernels {};

// Otherwise each tier would compare the shaders of the first.
TEST_P(VulkanProducts, AreThoseOfTheTier) {
  const VulkanChoice& choice = GetParam().choice;
  const std::string& tier = device_->facts().tier;
  if (!choice.uses_dots) {
    EXPECT_THAT(tier, HasSubstr("plain words"));
  }
  if (!choice.uses_native_arithmetic) {
    EXPECT_THAT(tier, AllOf(HasSubstr("division by integers"), Not(HasSubstr("double"))));
  }
  if (device_->facts().driver.find("llvmpipe") != std::string::npos && choice.uses_dots) {
    EXPECT_THAT(tier, AllOf(HasSubstr("dots of bytes"), HasSubstr("double")));
  }
}

TEST_P(VulkanKernels, QuantizeRows) {
  for (const TrialRows& rows : rows_of_the_day()) {
    for (const int k : {1, 31, 32, 33, 64, 100, 256, 520}) {
      expect_same_bits(quantize_trial(rows, k, static_cast<std::uint32_t>(k)), rows);
    }
  }
}

TEST_P(VulkanProducts, MultiplyByInt8) {
  for (const TrialRows& rows : kRows) {
    for (const auto& [n_columns, k] :
         {std::pair(16, 32), std::pair(1, 33), std::pair(37, 288), std::pair(64, 520)}) {
      expect_same_bits(product_trial(WeightKind::int8, rows, n_columns, k, 11), rows);
    }
  }
}

TEST_P(VulkanProducts, MultiplyByInt4) {
  for (const TrialRows& rows : kRows) {
    for (const auto& [n_columns, k] :
         {std::pair(16, 32), std::pair(1, 33), std::pair(37, 288), std::pair(64, 520)}) {
      expect_same_bits(product_trial(WeightKind::int4, rows, n_columns, k, 12), rows);
    }
  }
}

// Products with a matrix that is split over several ranges.
TEST_P(VulkanProducts, MultiplyByPartsOfAMatrix) {
  for (const TrialRows& rows : kFewRows) {
    for (const WeightKind kind : {WeightKind::int8, WeightKind::int4}) {
      for (const int n_columns : {17, 32, 75}) {
        expect_same_bits(product_parts_trial(kind, rows, n_columns, 100, 13), rows);
      }
    }
  }
}

TEST_P(VulkanKernels, NormaliseRows) {
  for (const TrialRows& rows : rows_of_the_day()) {
    for (const int n : {1, 15, 16, 17, 64, 333}) expect_same_bits(norm_trial(rows, n, 13), rows);
  }
}

TEST_P(VulkanKernels, AppliesRopeToHeads) {
  for (const TrialRows& rows : rows_of_the_day()) {
    for (const int half : {1, 5, 32, 64}) {
      expect_same_bits(apply_rope_trial(rows, 3, half, static_cast<std::uint32_t>(half)), rows);
    }
  }
}

TEST_P(VulkanKernels, GateRows) {
  for (const GateActivation activation : {GateActivation::silu, GateActivation::gelu_tanh}) {
    for (const TrialRows& rows : rows_of_the_day()) {
      for (const int n : {1, 64, 65, 300}) {
        expect_same_bits(gate_trial(rows, n, 14, activation), rows);
      }
    }
  }
}

TEST_P(VulkanKernels, NormaliseHeadsInPlace) {
  for (const TrialRows& rows : rows_of_the_day()) {
    for (const int n : {1, 16, 17, 64, 130}) {
      expect_same_bits(pieces_trial(rows, 1, n, false, 16), rows);
      expect_same_bits(pieces_trial(rows, 3, n, false, 17), rows);
      expect_same_bits(pieces_trial(rows, 3, n, true, 18), rows);
    }
  }
}

TEST_P(VulkanKernels, AddScaleAndCopyRows) {
  for (const TrialRows& rows : rows_of_the_day()) {
    for (const int n : {1, 64, 65, 300}) {
      expect_same_bits(add_trial(rows, n, 19), rows);
      expect_same_bits(columns_trial(rows, n, 20), rows);
      expect_same_bits(copy_trial(rows, n, false, 21), rows);
      expect_same_bits(copy_trial(rows, n, true, 22), rows);
    }
  }
}

TEST_P(VulkanKernels, LayerNorm) {
  for (const TrialRows& rows : kFewRows) {
    for (const int n : {1, 15, 16, 17, 64, 300}) {
      expect_same_bits(layer_norm_trial(rows, n, true, 27), rows);
      expect_same_bits(layer_norm_trial(rows, n, false, 28), rows);
    }
  }
}

TEST_P(VulkanKernels, CapAndActivateRows) {
  for (const TrialRows& rows : kFewRows) {
    for (const int n : {5, 64, 300}) {
      for (const float cap : {0.3F, 2.0F, 30.0F}) {
        expect_same_bits(cap_trial(rows, n, cap, 29), rows);
      }
      for (const GateActivation activation :
           {GateActivation::silu, GateActivation::gelu_tanh, GateActivation::gelu_erf}) {
        expect_same_bits(gate_trial(rows, n, 30, activation), rows);
        expect_same_bits(activate_trial(rows, n, activation, 31), rows);
      }
    }
  }
}

// Parts of rows that are whole, short, or the only one.
TEST_P(VulkanKernels, FindTheLargestOfRows) {
  for (const TrialRows& rows : kFewRows) {
    for (const int n : {1, 63, 65, 300, 2048, 2049, 5000}) {
      expect_same_bits(best_trial(rows, n, static_cast<std::uint32_t>(n)), rows);
    }
  }
}

// Tokens that share words of the cache, across pages.
TEST_P(VulkanKernels, StoreAndMoveKeysAndValues) {
  for (const kernels::KvKind kv :
       {kernels::KvKind::f32, kernels::KvKind::bf16, kernels::KvKind::int8}) {
    for (const auto& [n_kv_heads, head_dim] :
         {std::pair(1, 1), std::pair(2, 18), std::pair(3, 64), std::pair(1, 150)}) {
      const CacheShape shape = {.kv = kv, .n_kv_heads = n_kv_heads, .head_dim = head_dim};
      CacheShape part = shape;  // the middle third of the heads
      part.first_head = n_kv_heads;
      part.heads_of_row = 3 * n_kv_heads;
      for (const TrialRows& rows : {TrialRows{1, 1}, TrialRows{5, 8}, TrialRows{0, 2},
                                    TrialRows{64, 64}, TrialRows{33, 64}}) {
        SCOPED_TRACE(head_dim);
        expect_same_bits(store_trial(shape, rows, false, 23), rows);
        expect_same_bits(store_trial(shape, rows, true, 24), rows);
        expect_same_bits(store_trial(part, rows, true, 26), rows);
        expect_same_bits(move_trial(shape, rows, 25), rows);
      }
    }
  }
}

// Whole and partial chunks and splits, windows, nodes of trees, heads of odd widths.
TEST_P(VulkanKernels, Attend) {
  const AttendTrialShape kShapes[] = {
      {.n_heads = 1, .n_kv_heads = 1, .head_dim = 16, .n_keys = 1},
      {.n_heads = 2, .n_kv_heads = 1, .head_dim = 5, .n_keys = 64},
      {.n_heads = 4, .n_kv_heads = 2, .head_dim = 64, .n_keys = 130, .n_of_tree = 7},
      {.n_heads = 3, .n_kv_heads = 3, .head_dim = 80, .n_keys = 200, .window = 70},
      {.n_heads = 2, .n_kv_heads = 2, .head_dim = 256, .n_keys = 90, .n_of_tree = 40},
      {.n_heads = 2, .n_kv_heads = 1, .head_dim = 24, .n_keys = 2100, .n_of_tree = 3},
      {.n_heads = 2, .n_kv_heads = 1, .head_dim = 24, .n_keys = 2100, .window = 1040},
      {.n_heads = 1, .n_kv_heads = 1, .head_dim = 8, .n_keys = 2064, .window = 1040},
      {.n_heads = 4, .n_kv_heads = 2, .head_dim = 40, .n_keys = 90, .has_infinities = true},
      {.n_heads = 4, .n_kv_heads = 2, .head_dim = 40, .n_keys = 1100, .has_infinities = true},
      {.n_heads = 6, .n_kv_heads = 3, .head_dim = 20, .n_keys = 1100, .n_parts = 3},
      {.n_heads = 2, .n_kv_heads = 1, .head_dim = 40, .n_keys = 1100, .window = 90, .softcap = 3},
      {.n_heads = 2,
       .n_kv_heads = 2,
       .head_dim = 16,
       .n_keys = 70,
       .n_of_tree = 5,
       .softcap = 0.3F},
      {.n_heads = 4, .n_kv_heads = 4, .head_dim = 40, .n_keys = 90, .n_of_tree = 9, .n_parts = 2},
  };
  for (const kernels::KvKind kv :
       {kernels::KvKind::f32, kernels::KvKind::bf16, kernels::KvKind::int8}) {
    for (const AttendTrialShape& shape : kShapes) {
      for (const TrialRows& rows : {TrialRows{1, 1}, TrialRows{3, 4}, TrialRows{0, 2}}) {
        SCOPED_TRACE(shape.n_keys);
        expect_same_bits(attend_trial(kv, rows, shape, 15), rows);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, VulkanKernels, ::testing::ValuesIn(tiers_of_the_day()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Tiers, VulkanProducts, ::testing::ValuesIn(kTiers),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace outrider::device
