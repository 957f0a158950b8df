// SPDX-License-Identifier: Apache-2.0
// CUDA's kernels against the scalar table, byte by byte: emulated, in every order of threads, and
// on the GPU whose number stands in OUTRIDER_TEST_CUDA.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "device/cuda/emulated_driver.h"
#include "device/trials/attend_trial.h"
#include "device/trials/cache_trials.h"
#include "device/trials/row_trials.h"
#include "device/trials/trials.h"

namespace outrider::device::cuda {
namespace {

using kernels::WeightKind;

// All at once, one row more and less than go together, and programs recorded for more than come.
constexpr TrialRows kRows[] = {{1, 1}, {2, 2},   {3, 4}, {4, 4},  {5, 8},
                               {8, 8}, {16, 16}, {0, 8}, {9, 16}, {64, 64}};

enum class Where { ascending, descending, shuffled, gpu };

// Of these, for kernels in which rows have nothing in common.
constexpr TrialRows kFewRows[] = {{1, 1}, {5, 8}, {0, 2}, {17, 32}, {64, 64}};

class CudaKernels : public ::testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    if (GetParam() != Where::gpu) {
      device_ = open_emulated(kThreadOrders[static_cast<int>(GetParam())]);
      return;
    }
    const char* const number = std::getenv("OUTRIDER_TEST_CUDA");
    if (number == nullptr) GTEST_SKIP() << "OUTRIDER_TEST_CUDA names no GPU";
    device_ = std::make_unique<CudaDevice>(nvidia_driver(), std::atoi(number), cubins());
  }

  void expect_same_bits(const Trial& trial, const TrialRows& rows) {
    EXPECT_EQ(difference_from_host(*device_, trial), "")
        << rows.n << " of " << rows.max_rows << " rows on " << device_->facts().name;
  }
  void expect_same_bits(Function function, int n_random) {
    EXPECT_EQ(difference_from_host(*device_, arithmetic_trial(function, n_random, 1)), "")
        << "function " << static_cast<int>(function);
  }

  std::unique_ptr<CudaDevice> device_;
};

TEST_P(CudaKernels, GiveTheProcessorsArithmetic) {
  constexpr int kRandom = 1 << 14;
  for (int function = 0; function < kFunctions; ++function) {
    expect_same_bits(static_cast<Function>(function), kRandom);
  }
}

TEST_P(CudaKernels, QuantizeRows) {
  for (const TrialRows& rows : kRows) {
    for (const int k : {1, 31, 32, 33, 100, 256, 520}) {
      expect_same_bits(quantize_trial(rows, k, static_cast<std::uint32_t>(k)), rows);
    }
  }
}

TEST_P(CudaKernels, Multiply) {
  for (const WeightKind kind : {WeightKind::int8, WeightKind::int4}) {
    for (const TrialRows& rows : kRows) {
      for (const auto& [n_columns, k] :
           {std::pair(16, 32), std::pair(1, 33), std::pair(37, 288), std::pair(64, 520)}) {
        expect_same_bits(product_trial(kind, rows, n_columns, k, 11), rows);
      }
    }
  }
}

// Products with a matrix that is split over several ranges.
TEST_P(CudaKernels, MultiplyByPartsOfAMatrix) {
  for (const TrialRows& rows : kFewRows) {
    for (const WeightKind kind : {WeightKind::int8, WeightKind::int4}) {
      for (const int n_columns : {17, 32, 75}) {
        expect_same_bits(product_parts_trial(kind, rows, n_columns, 100, 13), rows);
      }
    }
  }
}

TEST_P(CudaKernels, Normalise) {
  for (const TrialRows& rows : kRows) {
    for (const int n : {1, 15, 17, 64, 333}) {
      expect_same_bits(norm_trial(rows, n, 13), rows);
      expect_same_bits(pieces_trial(rows, 1, n, false, 16), rows);
      expect_same_bits(pieces_trial(rows, 3, n, false, 17), rows);
      expect_same_bits(pieces_trial(rows, 3, n, true, 18), rows);
    }
  }
}

TEST_P(CudaKernels, ApplyRope) {
  for (const TrialRows& rows : kRows) {
    for (const int half : {1, 5, 32, 64}) {
      expect_same_bits(apply_rope_trial(rows, 3, half, static_cast<std::uint32_t>(half)), rows);
    }
  }
}

TEST_P(CudaKernels, GateAddScaleAndCopyRows) {
  for (const TrialRows& rows : kRows) {
    for (const int n : {1, 64, 65, 300}) {
      expect_same_bits(gate_trial(rows, n, 14, GateActivation::silu), rows);
      expect_same_bits(gate_trial(rows, n, 15, GateActivation::gelu_tanh), rows);
      expect_same_bits(add_trial(rows, n, 19), rows);
      expect_same_bits(columns_trial(rows, n, 20), rows);
      expect_same_bits(copy_trial(rows, n, false, 21), rows);
      expect_same_bits(copy_trial(rows, n, true, 22), rows);
    }
  }
}

TEST_P(CudaKernels, LayerNorm) {
  for (const TrialRows& rows : kFewRows) {
    for (const int n : {1, 15, 16, 17, 64, 300}) {
      expect_same_bits(layer_norm_trial(rows, n, true, 27), rows);
      expect_same_bits(layer_norm_trial(rows, n, false, 28), rows);
    }
  }
}

TEST_P(CudaKernels, CapAndActivateRows) {
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
TEST_P(CudaKernels, FindTheLargestOfRows) {
  for (const TrialRows& rows : kFewRows) {
    for (const int n : {1, 63, 65, 300, 2048, 2049, 5000}) {
      expect_same_bits(best_trial(rows, n, static_cast<std::uint32_t>(n)), rows);
    }
  }
}

// Tokens that share words of the cache, from page to page.
TEST_P(CudaKernels, StoreAndMoveKeysAndValues) {
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

// Whole chunks and splits and parts of them, windows, nodes of trees, heads of odd widths.
TEST_P(CudaKernels, Attend) {
  const AttendTrialShape shapes[] = {
      {.n_heads = 1, .n_kv_heads = 1, .head_dim = 16, .n_keys = 1},
      {.n_heads = 2, .n_kv_heads = 1, .head_dim = 5, .n_keys = 64},
      {.n_heads = 4, .n_kv_heads = 2, .head_dim = 64, .n_keys = 130, .n_of_tree = 7},
      {.n_heads = 3, .n_kv_heads = 3, .head_dim = 80, .n_keys = 200, .window = 70},
      {.n_heads = 2, .n_kv_heads = 2, .head_dim = 256, .n_keys = 90, .n_of_tree = 40},
      {.n_heads = 2, .n_kv_heads = 1, .head_dim = 24, .n_keys = 2100, .n_of_tree = 3},
      {.n_heads = 2, .n_kv_heads = 1, .head_dim = 24, .n_keys = 2100, .window = 1040},
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
  };
  for (const kernels::KvKind kv :
       {kernels::KvKind::f32, kernels::KvKind::bf16, kernels::KvKind::int8}) {
    for (const AttendTrialShape& shape : shapes) {
      for (const TrialRows& rows : {TrialRows{1, 1}, TrialRows{3, 4}, TrialRows{0, 2}}) {
        SCOPED_TRACE(shape.n_keys);
        expect_same_bits(attend_trial(kv, rows, shape, 15), rows);
      }
    }
  }
}

std::string name_of_place(const ::testing::TestParamInfo<Where>& info) {
  constexpr const char* kNames[] = {"EmulatedAscending", "EmulatedDescending", "EmulatedShuffled",
                                    "Gpu"};
  return kNames[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(On, CudaKernels,
                         ::testing::Values(Where::ascending, Where::descending, Where::shuffled,
                                           Where::gpu),
                         name_of_place);

}  // namespace
}  // namespace outrider::device::cuda
