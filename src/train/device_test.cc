// Nothing in training is made on the processor and left there. "meta" stands in for another device:
// its tensors have shapes and no values, and torch refuses to compute with both kinds at once.
#include "train/device.h"

#include <gtest/gtest.h>

#include <vector>

#include "outrider/error.h"
#include "train/batch_tensors.h"
#include "train/llama_module.h"
#include "train/losses.h"
#include "train/mtp_module.h"
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

void expect_all_on_meta(const torch::nn::Module& module) {
  for (const auto& parameter : module.named_parameters()) {
    EXPECT_TRUE(parameter.value().is_meta()) << parameter.key();
    EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
    EXPECT_TRUE(parameter.value().grad().is_meta()) << parameter.key();
  }
}

// Otherwise nothing below could fail.
TEST_F(OnMeta, TorchRefusesToMixDevices) {
  const Tensor here = torch::ones({3});
  EXPECT_THROW(here + here.to(torch::kMeta), c10::Error);
}

TEST_F(OnMeta, AModelAndItsLossStayOnTheDevice) {
  for (const Products products : {Products::full, Products::bf16}) {
    const LlamaModule model = make_llama(tiny_config(), products, {}, 1);
    const BatchTensors batch(some_batch());
    const Tensor logits = model->logits(model->features(batch.inputs()));
    const Tensor loss =
        weighted_mean(cross_entropy_rows(logits.flatten(0, 1), batch.targets().flatten()),
                      batch.target_weights().flatten());
    loss.backward();
    EXPECT_TRUE(loss.is_meta());
    expect_all_on_meta(*model);
  }
}

TEST_F(OnMeta, ModulesBehindAModelStayOnTheDevice) {
  const LlamaModule model = make_llama(tiny_config(), Products::full, {}, 1);
  MtpModules modules(tiny_config(), Products::full, 2);
  const BatchTensors batch(some_batch());
  const Tensor features = model->features(batch.inputs());
  const MtpTrunk trunk{.features = features,
                       .embed = [&](const Tensor& tokens) { return model->embed(tokens); },
                       .logits = [&](const Tensor& x) { return model->logits(x); }};
  Tensor loss;
  for (const MtpParts& parts : judge_mtp(modules, trunk, batch.tokens, batch.weights,
                                         model->logits(features).detach())) {
    loss = loss.defined() ? loss + parts.loss : parts.loss;
  }
  loss.backward();
  expect_all_on_meta(*modules);
}

TEST(TrainingDevice, ACudaDeviceThatIsNotThereIsRefused) {
  if (torch::cuda::is_available()) GTEST_SKIP() << "libtorch sees a CUDA device";
  EXPECT_THROW(set_training_device("cuda"), UsageError);
  EXPECT_EQ(set_training_device("auto"), "cpu");
  EXPECT_EQ(set_training_device("cpu"), "cpu");
}

}  // namespace
}  // namespace outrider::train
