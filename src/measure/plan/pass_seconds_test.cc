// SPDX-License-Identifier: Apache-2.0
// The formula for passes: cases computed by hand, and monotonicity.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "outrider/error.h"
#include "outrider/speed_plan.h"

namespace outrider {
namespace {

// One layer, all widths powers of two.
ModelShape small_shape() {
  ModelShape shape;
  shape.n_layers = 2;
  shape.dim = 64;
  shape.n_heads = 4;
  shape.n_kv_heads = 2;
  shape.head_dim = 16;
  shape.hidden_dim = 128;
  shape.vocabulary_size = 256;
  shape.tied_head = true;
  return shape;
}

Device slow_device() {
  Device device;
  device.name = "slow";
  device.bandwidth_bytes_per_second = 1e6;
  device.bf16_ops_per_second = 1e8;
  device.int8_ops_per_second = 2e8;
  return device;
}

PassSeconds of(const ModelShape& shape, int rows, int context = 0, const std::string& weights = "",
               int batch = 1) {
  return pass_seconds(shape, {.weights = weights, .rows = rows, .context = context, .batch = batch},
                      slow_device());
}

TEST(PassSeconds, CountsWeights) {
  const ModelShape shape = small_shape();
  // Queries and output 64 * 64 each, keys and values 64 * 32 each, of two layers.
  EXPECT_EQ(shape.attention_weights(), 2 * (2 * 64 * 64 + 2 * 64 * 32));
  EXPECT_EQ(shape.mlp_weights(), 2 * 3 * 64 * 128);
  EXPECT_EQ(shape.head_weights(), 256 * 64);
  EXPECT_EQ(shape.n_parameters(), 24576 + 49152 + 16384);
  EXPECT_EQ(shape.kv_elements(), 2 * 2 * 2 * 16);
}

TEST(PassSeconds, OneRowByHand) {
  const PassSeconds pass = of(small_shape(), 1, 100);
  constexpr double kWeights = 24576 + 49152 + 16384;
  EXPECT_DOUBLE_EQ(pass.weight_bytes, 2 * kWeights);
  EXPECT_DOUBLE_EQ(pass.product_ops, 2 * kWeights);
  EXPECT_DOUBLE_EQ(pass.products, 2 * kWeights / 1e6);
  // 100 tokens of 64 two-byte numbers per layer; the row's own are not read from memory.
  EXPECT_DOUBLE_EQ(pass.cache_bytes, 100.0 * 2 * 64 * 2);
  EXPECT_DOUBLE_EQ(pass.attention, pass.cache_bytes / 1e6);
  EXPECT_DOUBLE_EQ(pass.attention_ops, 4.0 * 4 * 16 * (2 * 101));
  // A layer: four times dim, the heads' 2 (4 + 2) 16, three times hidden; and the last norm.
  EXPECT_DOUBLE_EQ(pass.rows, (2 * (4 * 64 + 192 + 3 * 128) + 2 * 64) * 2 / 1e6);
  EXPECT_DOUBLE_EQ(pass.logits, 4 * 256 / 1e6);
  EXPECT_EQ(pass.fixed, 0);
  EXPECT_DOUBLE_EQ(pass.total(), pass.products + pass.attention + pass.rows + pass.logits);
  EXPECT_TRUE(pass.waits_for_memory());
}

TEST(PassSeconds, ManyRowsWaitForArithmetic) {
  // With bf16 products 2 n / 1e8 reaches 2 / 1e6 at 100 rows; with int8 in 1.0625 bytes at 106.25.
  constexpr double kWeights = 24576 + 49152 + 16384;
  EXPECT_DOUBLE_EQ(of(small_shape(), 100).products, 2 * kWeights / 1e6);
  EXPECT_DOUBLE_EQ(of(small_shape(), 200).products, 2 * kWeights * 200 / 1e8);
  const PassSeconds wide = of(small_shape(), 1000);
  EXPECT_GT(wide.attention, 0);
  EXPECT_DOUBLE_EQ(wide.memory_bound, wide.rows + wide.logits);
  EXPECT_DOUBLE_EQ(of(small_shape(), 1, 0, "q8_0").products, 34.0 / 32 * kWeights / 1e6);
  EXPECT_DOUBLE_EQ(of(small_shape(), 300, 0, "q8_0").products, 2 * kWeights * 300 / 2e8);
}

TEST(PassSeconds, GrowsWithAllThatIsAsked) {
  const ModelShape shape = small_shape();
  double before = 0;
  for (const int rows : {1, 2, 3, 5, 9, 17, 33, 200}) {
    const double seconds = of(shape, rows, 50).total();
    EXPECT_GT(seconds, before) << rows;
    before = seconds;
  }
  EXPECT_LT(of(shape, 4, 10).total(), of(shape, 4, 11).total());
  EXPECT_LT(of(shape, 4, 10).total(), of(shape, 4, 10, "", 2).total());
  EXPECT_LT(of(shape, 4, 10, "q4_k").total(), of(shape, 4, 10, "q8_0").total());
  EXPECT_LT(of(shape, 4, 10, "q8_0").total(), of(shape, 4, 10, "bf16").total());
  // A batch reads weights once, but keys and values for each text.
  const PassSeconds one = of(shape, 4, 10);
  const PassSeconds two = of(shape, 4, 10, "", 2);
  EXPECT_EQ(two.weight_bytes, one.weight_bytes);
  EXPECT_EQ(two.cache_bytes, 2 * one.cache_bytes);
}

TEST(PassSeconds, WindowsEndWhatIsRead) {
  ModelShape shape = small_shape();
  shape.n_window_layers = 1;
  shape.window = 8;
  EXPECT_EQ(shape.positions_read(5), 2 * 5);
  EXPECT_EQ(shape.positions_read(100), 100 + 8);
  EXPECT_LT(of(shape, 2, 100).attention, of(small_shape(), 2, 100).attention);
}

TEST(PassSeconds, ReadsTheExpertsThatRowsTake) {
  ModelShape shape = small_shape();
  EXPECT_EQ(expected_experts(shape, 7), 0);
  shape.n_experts = 8;
  shape.n_active = 2;
  EXPECT_DOUBLE_EQ(expected_experts(shape, 1), 2);
  // Each of two rows misses 3/4 of the experts: 8 (1 - 9/16).
  EXPECT_DOUBLE_EQ(expected_experts(shape, 2), 3.5);
  EXPECT_NEAR(expected_experts(shape, 100), 8, 1e-9);
  // A row multiplies two of eight experts, however many are read.
  const double dense = 24576 + 16384;
  const double expert = 2 * 3 * 64 * 128;
  const PassSeconds pass = of(shape, 2);
  EXPECT_DOUBLE_EQ(pass.weight_bytes, 2 * (dense + 3.5 * expert));
  EXPECT_DOUBLE_EQ(pass.product_ops, 2 * 2 * (dense + 2 * expert));
}

TEST(PassSeconds, TakesMeasuredProducts) {
  Device device = slow_device();
  device.products = {{.type = "bf16", .rows = 1, .seconds_per_weight = 1},
                     {.type = "bf16", .rows = 4, .seconds_per_weight = 4},
                     {.type = "int8", .rows = 1, .seconds_per_weight = 100},
                     {.type = "bf16", .rows = 8, .seconds_per_weight = 12}};
  ModelShape shape = small_shape();
  shape.stored = {{.type = "bf16", .n_weights = 10, .n_bytes = 20}};
  const auto products = [&](int rows) {
    return pass_seconds(shape, {.weights = {}, .rows = rows, .context = 0, .batch = 1}, device)
        .products;
  };
  EXPECT_DOUBLE_EQ(products(1), 10);
  EXPECT_DOUBLE_EQ(products(2), 20);
  EXPECT_DOUBLE_EQ(products(4), 40);
  EXPECT_DOUBLE_EQ(products(6), 80);
  EXPECT_DOUBLE_EQ(products(8), 120);
  EXPECT_DOUBLE_EQ(products(9), 140);  // extrapolated
}

TEST(PassSeconds, RefusesWhatCannotBeMeant) {
  EXPECT_THROW(of(small_shape(), 0), UsageError);
  EXPECT_THROW(of(small_shape(), 1, -1), UsageError);
  EXPECT_THROW(of(small_shape(), 1, 0, "", 0), UsageError);
  EXPECT_THROW(of(small_shape(), 1, 0, "q9_k"), UsageError);
  EXPECT_THROW(of({}, 1), UsageError);
  EXPECT_THROW(pass_seconds(small_shape(), {}, {}), UsageError);
  ModelShape mixture = small_shape();
  mixture.n_experts = 4;
  EXPECT_THROW(of(mixture, 1), UsageError);
  mixture.n_active = 5;
  EXPECT_THROW(of(mixture, 1), UsageError);
  EXPECT_DOUBLE_EQ(bytes_per_weight("bf16"), 2);
  EXPECT_DOUBLE_EQ(bytes_per_weight("q4_k"), 144.0 / 256);
  EXPECT_DOUBLE_EQ(bytes_per_weight("q6_k"), 210.0 / 256);
  EXPECT_THAT(known_weights(), ::testing::Contains("q5_k"));
}

}  // namespace
}  // namespace outrider
