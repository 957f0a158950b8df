// SPDX-License-Identifier: Apache-2.0
// Tensors that training creates besides its modules are created on the training device. "meta"
// simulates one: its tensors have shapes but no values. (Modules move to CUDA devices, not to this
// one.)
#include "train/device.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"
#include "train/batches/batch_tensors.h"
#include "train/losses/target_tensors.h"
#include "train/modules/llama_module.h"
#include "train/teacher.h"
#include "train/training_device.h"

namespace outrider::train {
namespace {

using torch::Tensor;

class OnMeta : public ::testing::Test {
 protected:
  void SetUp() override { set_training_device(torch::Device(torch::kMeta)); }
  void TearDown() override { set_training_device(torch::Device(torch::kCPU)); }
};

ModelConfig tiny_config() {
  ModelConfig config;
  config.architecture = "llama";
  config.vocabulary_size = 50;
  config.context_length = 64;
  config.n_layers = 2;
  config.dim = 16;
  config.n_heads = 2;
  config.n_kv_heads = 1;
  config.head_dim = 8;
  config.hidden_dim = 24;
  return config;
}

Batch some_batch() {
  return {.n_sequences = 2,
          .length = 6,
          .tokens = std::vector<TokenId>(12, 7),
          .weights = std::vector<float>(12, 1)};
}

TEST_F(OnMeta, BatchesAndWhatGoesWithThemAreMadeThere) {
  const BatchTensors batch(some_batch());
  for (const Tensor& tensor :
       {batch.tokens, batch.weights, batch.inputs(), batch.targets(), batch.target_weights()}) {
    EXPECT_TRUE(tensor.is_meta());
  }
  const ModelConfig config = tiny_config();
  const auto like = torch::TensorOptions().device(torch::kMeta).dtype(torch::kFloat64);
  const Rotation rotation = rotation_of(config, 2, 5, like);
  for (const Tensor& tensor : {causal_mask(5, like), rotation.cosines, rotation.sines}) {
    EXPECT_TRUE(tensor.is_meta());
    EXPECT_EQ(tensor.scalar_type(), torch::kFloat64);
  }
  // Steps made of libtorch's operations have the same result types as the fused ones.
  const Tensor narrow = torch::zeros({2, 4, 4}, like.dtype(torch::kBFloat16));
  const Tensor tokens = torch::zeros({2, 4}, like.dtype(torch::kInt64));
  EXPECT_EQ(cross_entropy_rows(narrow, tokens).scalar_type(), torch::kFloat32);
  EXPECT_EQ(causal_softmax(narrow).scalar_type(), torch::kBFloat16);
  EXPECT_EQ(silu_multiply(narrow, narrow).scalar_type(), torch::kBFloat16);
}

TEST_F(OnMeta, WhatTheTargetSaysIsTakenThere) {
  const test::TemporaryDirectory directory;
  test::write_hugging_face(test::make_tiny_model({}), directory.path());
  Teacher target(directory.path(), 1);
  const std::vector<int> layers = {1};
  const TargetTensors seen(target, some_batch(), layers, torch::kFloat32);
  const SharedMatrices shared(target);
  for (const Tensor& tensor :
       {seen.tokens, seen.weights, seen.features, seen.logits, shared.input, shared.output}) {
    EXPECT_TRUE(tensor.is_meta());
  }
}

TEST(TrainingDevice, ACudaDeviceThatIsNotThereIsRefused) {
  if (torch::cuda::is_available()) GTEST_SKIP() << "libtorch sees a CUDA device";
  EXPECT_THROW(set_training_device("cuda"), UsageError);
  EXPECT_EQ(set_training_device("auto"), "cpu");
  EXPECT_EQ(set_training_device("cpu"), "cpu");
}

// By the system's description of the processor, not by the processor itself.
TEST(TrainingDevice, ProductsAreInBf16WhereTheProcessorHasInstructionsForThem) {
  std::ifstream file("/proc/cpuinfo");
  if (!file) GTEST_SKIP() << "no /proc/cpuinfo here";
  const std::string cpuinfo((std::istreambuf_iterator<char>(file)), {});
  set_training_device("cpu");
  EXPECT_EQ(quickest_products() == Products::bf16,
            cpuinfo.find("avx512_bf16") != std::string::npos);
}

}  // namespace
}  // namespace outrider::train
