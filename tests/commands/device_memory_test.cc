// SPDX-License-Identifier: Apache-2.0
// A driver whose memory is used up in the middle of a text: the text ends with an error, what it
// has written by then is the beginning of the processor's text, and the next text is whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/software_device.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/vulkan_faults.h"

namespace outrider::test {
namespace {

// A device's first pages hold 1,024 tokens (DevicePageStore): the text crosses that.
constexpr int kPrompt = 1000;
constexpr int kTokens = 50;

TEST(DeviceMemory, IsOutInTheMiddleOfATextAndNothingIsLost) {
  if (!VulkanFaults::are_built()) GTEST_SKIP() << "no layer that breaks drivers";
  const VulkanFaults faults;
  const std::string device = software_device();
  if (device.empty()) GTEST_SKIP() << kNoSoftwareDevice;
  const TemporaryDirectory directory;
  const std::filesystem::path root = directory.path();
  TinyShape shape;
  shape.context_length = 2048;
  shape.n_layers = 1;
  shape.dim = 32;
  shape.n_heads = 2;
  shape.n_kv_heads = 1;
  shape.hidden_dim = 32;
  const TinyModel target = make_tiny_model(shape);
  write_hugging_face(target, root / "target");
  write_hugging_face(with_noise(target, 0.3F, 4), root / "draft");
  const auto load = [&](const std::string& where) {
    return Model::load(root / "target", {.weights = "int8", .threads = 1, .device = where});
  };
  const auto here = load("");
  const auto keeps_device_open = load(device);
  GenerateRequest request;
  for (int i = 0; i < kPrompt; ++i) request.prompt.push_back('a' + i * i % 23);
  request.options.max_tokens = kTokens;
  request.options.ignore_eos = true;
  const GenerateResult whole = Generator(here).generate({&request, 1}).front();
  ASSERT_EQ(whole.ids.size(), static_cast<std::size_t>(kTokens));

  SpeculationOptions drafted;
  drafted.drafter = "model:" + (root / "draft").string();
  drafted.drafter_options = {.weights = "int8", .threads = 1};
  for (const SpeculationOptions& speculation : {SpeculationOptions{}, drafted}) {
    SCOPED_TRACE(speculation.drafter);
    const auto there = load(device);  // with the first pages alone
    Generator generator(there, speculation);
    std::vector<TokenId> written;
    GenerateRequest interrupted = request;
    interrupted.options.on_token = [&](const TokenEvent& token) {
      written.push_back(token.id);
      if (written.size() == 3) faults.set("no memory");
    };
    EXPECT_THROW((void)generator.generate({&interrupted, 1}), NoDeviceMemory);
    faults.set("");
    EXPECT_GE(written.size(), 3U);
    EXPECT_LT(written.size(), whole.ids.size());
    written.resize(std::min(written.size(), whole.ids.size()));
    EXPECT_EQ(written, std::vector<TokenId>(whole.ids.begin(),
                                            whole.ids.begin() + static_cast<int>(written.size())));
    EXPECT_EQ(there->failure(), "");
    EXPECT_EQ(generator.generate({&request, 1}).front().ids, whole.ids);
  }
}

}  // namespace
}  // namespace outrider::test
