// SPDX-License-Identifier: Apache-2.0
// Compares the steps' own loops with libtorch's operations in double: values and gradients, in f32
// and bf16, with sizes that are no multiples.
#include "train/fused/fused_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace outrider::train {
namespace {

using torch::Tensor;
using Inputs = std::vector<Tensor>;
using Step = std::function<Tensor(const Inputs&, bool bf16)>;

// The step's result for these values in a type, and a random functional's gradient for each input.
struct Given {
  Tensor value;
  Inputs gradients;
};
Given give(const Step& step, const Inputs& inputs, const std::vector<torch::ScalarType>& types,
           bool bf16, const Tensor& functional) {
  Inputs leaves;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    leaves.push_back(inputs[i].to(types[i], false, true).requires_grad_());
  }
  const Tensor value = step(leaves, bf16);
  const Tensor loss = (value.to(torch::kFloat64) * functional).sum();
  return {value, torch::autograd::grad({loss}, leaves)};
}

// Relative, except for numbers that are small compared with the terms of their sum.
double distance(const Tensor& a, const Tensor& b) {
  const Tensor difference = (a.to(torch::kFloat64) - b.to(torch::kFloat64)).abs();
  return (difference / (b.to(torch::kFloat64).abs() + 0.1)).max().item<double>();
}

// Per input: whether it is bf16 if the step's products are.
void expect_like_doubles(const Step& step, const Inputs& given, const std::vector<bool>& narrow,
                         const char* name) {
  for (const bool bf16 : {false, true}) {
    std::vector<torch::ScalarType> types;
    Inputs inputs;
    for (std::size_t i = 0; i < given.size(); ++i) {
      types.push_back(bf16 && narrow[i] ? torch::kBFloat16 : torch::kFloat32);
      inputs.push_back(given[i].to(types[i]).to(torch::kFloat64));
    }
    const std::vector<torch::ScalarType> doubles(given.size(), torch::kFloat64);
    const Tensor like = step(inputs, bf16);
    torch::manual_seed(3);
    // Rounded first, so that its rounding is not an error of the step.
    const Tensor functional = torch::randn_like(like).to(torch::kBFloat16).to(torch::kFloat64);
    const Given expected = give(step, inputs, doubles, bf16, functional);
    const Given got = give(step, inputs, types, bf16, functional);
    EXPECT_TRUE(expected.value.scalar_type() == torch::kFloat64);
    // Sums of some ten terms, each rounded once to half a unit of 2^-8 or 2^-23.
    const double bound = bf16 ? 2e-2 : 3e-6;
    EXPECT_LT(distance(got.value, expected.value), bound) << name << " bf16 " << bf16;
    ASSERT_EQ(got.gradients.size(), given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
      EXPECT_EQ(got.gradients[i].scalar_type(), types[i]);
      EXPECT_LT(distance(got.gradients[i], expected.gradients[i]), bound)
          << name << ", input " << i << ", bf16 " << bf16;
      EXPECT_GT(expected.gradients[i].abs().max().item<double>(), 1e-3) << name;
    }
  }
}

Tensor random(std::initializer_list<std::int64_t> sizes, double size = 1) {
  return torch::randn(sizes, torch::kFloat64) * size;
}

class FusedSteps : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(1); }
};

TEST_F(FusedSteps, RmsNorm) {
  expect_like_doubles(
      [](const Inputs& in, bool bf16) {
        const bool wide = in[0].scalar_type() == torch::kFloat64;
        return rms_norm(in[0], in[1], 1e-5,
                        wide ? torch::kFloat64 : (bf16 ? torch::kBFloat16 : torch::kFloat32));
      },
      {random({3, 7, 43}), random({43})}, {false, false}, "norm");
}

TEST_F(FusedSteps, TurnedHeads) {
  const auto angles = random({5, 6}, 2);
  expect_like_doubles(
      [&](const Inputs& in, bool) {
        const auto type =
            in[0].scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
        return turned_heads(in[0], 3, {angles.cos().to(type), angles.sin().to(type)}, 0.37);
      },
      {random({2, 5, 36})}, {true}, "heads");
}

TEST_F(FusedSteps, CausalSoftmax) {
  expect_like_doubles([](const Inputs& in, bool) { return causal_softmax(in[0]); },
                      {random({2, 3, 9, 9}, 3)}, {true}, "softmax");
  expect_like_doubles([](const Inputs& in, bool) { return causal_softmax(in[0]); },
                      {random({2, 3, 5, 41}, 3)}, {true}, "softmax behind past keys");
  const Tensor shares = causal_softmax(random({1, 4, 6}).to(torch::kFloat32));
  for (int token = 0; token < 4; ++token) {
    for (int key = 0; key < 6; ++key) {
      EXPECT_EQ(shares[0][token][key].item<float>() > 0, key <= token + 2) << token << ' ' << key;
    }
  }
}

TEST_F(FusedSteps, SiluMultiply) {
  expect_like_doubles([](const Inputs& in, bool) { return silu_multiply(in[0], in[1]); },
                      {random({4, 67}, 4), random({4, 67})}, {true, true}, "gate");
}

TEST_F(FusedSteps, StreamSum) {
  expect_like_doubles([](const Inputs& in, bool) { return stream_sum(in[0], in[1]); },
                      {random({4, 67}), random({4, 67})}, {false, true}, "sum");
}

TEST_F(FusedSteps, CrossEntropy) {
  const Tensor tokens = torch::tensor({3, 0, 100, 7, 7, 50}, torch::kInt64).view({2, 3});
  expect_like_doubles([&](const Inputs& in, bool) { return cross_entropy_rows(in[0], tokens); },
                      {random({2, 3, 101}, 5)}, {true}, "loss");
}

// The target's logits are always f32.
TEST_F(FusedSteps, CompareDistributions) {
  const Tensor target = random({2, 3, 101}, 4).to(torch::kFloat32);
  const auto rows = [&](const Inputs& in) {
    return compare_distributions(
        in[0],
        target.to(in[0].scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32));
  };
  const Tensor logits = random({2, 3, 101}, 5);
  expect_like_doubles([&](const Inputs& in, bool) { return rows(in).cross_entropy; }, {logits},
                      {true}, "cross-entropy");
  const DistributionRows got = rows({logits.to(torch::kFloat32)});
  const DistributionRows expected = rows({logits.to(torch::kFloat32).to(torch::kFloat64)});
  EXPECT_LT(distance(got.entropy, expected.entropy), 3e-6);
  EXPECT_LT(distance(got.overlap, expected.overlap), 3e-6);
  const Tensor prob = torch::softmax(logits, -1);
  EXPECT_LT(distance(got.overlap,
                     torch::minimum(prob, torch::softmax(target.to(torch::kFloat64), -1)).sum(-1)),
            3e-6);
}

// Far beyond the range of an f32 exponential; NaN is kept.
TEST_F(FusedSteps, KeepToWhatExponentialsCan) {
  const Tensor far = torch::tensor({{-1e4F, 1e4F, 0.0F}});
  const Tensor losses =
      cross_entropy_rows(far.expand({2, 3}), torch::tensor({1, 0}, torch::kInt64));
  EXPECT_EQ(losses[0].item<float>(), 0);
  EXPECT_EQ(losses[1].item<float>(), 2e4F);
  const Tensor gate = torch::tensor({-1e4F, 1e4F, -90.0F, 90.0F, 0.0F});
  const Tensor gated = silu_multiply(gate, torch::ones_like(gate));
  EXPECT_NEAR(gated[0].item<float>(), 0, 1e-30);
  EXPECT_EQ(gated[1].item<float>(), 1e4F);
  EXPECT_NEAR(gated[2].item<float>(), 0, 1e-30);
  EXPECT_EQ(gated[3].item<float>(), 90);
  EXPECT_EQ(gated[4].item<float>(), 0);
  const float none = std::numeric_limits<float>::quiet_NaN();
  for (const torch::ScalarType type : {torch::kFloat32, torch::kBFloat16}) {
    const Tensor ruined = torch::tensor({1.0F, none, 2.0F}).to(type);
    EXPECT_TRUE(silu_multiply(ruined, ruined).isnan()[1].item<bool>());
    EXPECT_TRUE(causal_softmax(ruined.view({1, 3})).isnan().all().item<bool>());
    EXPECT_TRUE(cross_entropy_rows(ruined.view({1, 3}), torch::tensor({0}, torch::kInt64))
                    .isnan()
                    .all()
                    .item<bool>());
    const Tensor sound = torch::tensor({{1.0F, 3.0F, 2.0F}});
    EXPECT_TRUE(
        compare_distributions(ruined.view({1, 3}), sound).cross_entropy.isnan().all().item<bool>());
    EXPECT_TRUE(compare_distributions(sound.to(type), ruined.view({1, 3}).to(torch::kFloat32))
                    .cross_entropy.isnan()
                    .all()
                    .item<bool>());
  }
}

}  // namespace
}  // namespace outrider::train
