// SPDX-License-Identifier: Apache-2.0
// Texts whose passes run on a device: plain, drafted by every drafter, alone and together. Ids and
// logits equal, bit for bit, those of plain decoding on the processor with the table `scalar`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/proofs/drafter_cases.h"
#include "tests/support/proofs/drafter_worlds.h"
#include "tests/support/software_device.h"

namespace outrider {
namespace {

using test::DrafterCase;
using test::DrafterFiles;
using test::kDrafterCases;
using ::testing::HasSubstr;

ModelOptions options_on(const std::string& device, const char* kv) {
  return {.weights = "int8", .kv = kv, .threads = 1, .kernels = "scalar", .device = device};
}

std::vector<GenerateRequest> requests(const Model& model, int max_tokens) {
  std::vector<GenerateRequest> all;
  for (const char* text : {DrafterFiles::kFewPrompt, "Quick!"}) {
    GenerateRequest request;
    request.prompt = model.tokenizer().encode(text, true);
    request.options.max_tokens = max_tokens;
    request.options.keep_logits = true;
    request.options.sampling = DrafterFiles::get().few_characters({});
    all.push_back(request);
  }
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void expect_same(const std::vector<GenerateResult>& got, const std::vector<GenerateResult>& plain) {
  ASSERT_EQ(got.size(), plain.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].ids, plain[i].ids);
    EXPECT_TRUE(same_bits(got[i].logits, plain[i].logits));
  }
}

// Compares drafted texts on the device with plain ones on the processor.
void expect_plain_texts(const DrafterCase& drafter, const std::string& device, const char* kv,
                        const char* tree, const char* verify, int max_tokens) {
  SCOPED_TRACE(std::string(drafter.spec) + " " + kv + " " + tree + " " + verify);
  const auto here = Model::load(DrafterFiles::get().target(), options_on("", kv));
  const auto there = Model::load(DrafterFiles::get().target(), options_on(device, kv));
  EXPECT_EQ(here->summary().device, "");
  EXPECT_NE(there->summary().device, "");
  const std::vector<GenerateRequest> all = requests(*here, max_tokens);
  const std::vector<GenerateResult> plain = Generator(here).generate(all);
  SpeculationOptions options = test::speculation_of(drafter);
  options.drafter_options = options_on(device, kv);
  options.tree = tree;
  options.verify = verify;
  Generator generator(there, options);
  const std::vector<GenerateResult> drafted = generator.generate(all);
  expect_same(drafted, plain);
  std::int64_t n_drafted = 0;
  for (const GenerateResult& result : drafted) n_drafted += result.statistics.drafted;
  EXPECT_GT(n_drafted, 0);
  expect_same({generator.generate({&all[1], 1}).front()}, {plain[1]});
}

// The assistant reads the target's cache, which a device does not share.
bool reads_a_cache(const DrafterCase& drafter) { return drafter.name == std::string("assistant"); }

class DeviceContract : public ::testing::TestWithParam<DrafterCase> {};

TEST_P(DeviceContract, TextsAreThoseOfPlainDecodingOnTheProcessor) {
  const DrafterCase& drafter = GetParam();
  if (reads_a_cache(drafter)) {
    const auto model = Model::load(DrafterFiles::get().target(), options_on("host", "f32"));
    try {
      const Generator generator(model, test::speculation_of(drafter));
      FAIL() << "it was made";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("keys and values can be read"));
    }
    return;
  }
  expect_plain_texts(drafter, "host", "f32", "", "exact", 24);
  expect_plain_texts(drafter, "host", "bf16", "widths:3,2,1", "traversal", 16);
}

// CUDA's kernels, emulated, their threads in another order each time; fewer tokens, since that is
// slow.
TEST_P(DeviceContract, TextsAreThoseOfPlainDecodingOnEmulatedCuda) {
  const DrafterCase& drafter = GetParam();
  if (reads_a_cache(drafter)) GTEST_SKIP() << "it reads the target's cache";
  expect_plain_texts(drafter, "cuda-emulated:1", "f32", "", "exact", 8);
  expect_plain_texts(drafter, "cuda-emulated:2", "int8", "widths:3,2,1", "traversal", 6);
}

INSTANTIATE_TEST_SUITE_P(Drafters, DeviceContract, ::testing::ValuesIn(kDrafterCases),
                         [](const auto& info) { return std::string(info.param.name); });

// All drafters in one test, and a model that stays: the driver takes long to compile kernels, and
// an opened device is shared as long as somebody uses it.
TEST(DeviceTexts, AreThoseOfTheProcessorOnVulkan) {
  const std::string device = test::software_device();
  if (device.empty()) GTEST_SKIP() << test::kNoSoftwareDevice;
  const auto keeps_device = Model::load(DrafterFiles::get().target(), options_on(device, "f32"));
  int n_drafters = 0;
  for (const DrafterCase& drafter : kDrafterCases) {
    if (reads_a_cache(drafter)) continue;
    expect_plain_texts(drafter, device, "f32", "", "exact", 12);
    expect_plain_texts(drafter, device, "int8", "widths:3,2,1", "traversal", 8);
    ++n_drafters;
  }
  EXPECT_EQ(n_drafters, static_cast<int>(std::size(kDrafterCases)) - 1);
}

TEST(DeviceTexts, SayWhatADeviceCannotDo) {
  const auto why = [](const ModelOptions& options) -> std::string {
    try {
      (void)Model::load(DrafterFiles::get().target(), options);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(why({.threads = 1, .device = "host"}),
              AllOf(HasSubstr("device host"), HasSubstr("int8 or int4")));
  EXPECT_THAT(why({.threads = 1, .device = "metal:0"}), HasSubstr("metal:0"));
  EXPECT_THAT(why({.threads = 1, .device = "vulkan:4711x"}), HasSubstr("vulkan:4711x"));
}

}  // namespace
}  // namespace outrider
