// SPDX-License-Identifier: Apache-2.0
// Trained models on a software device: 16 greedy tokens, plain and drafted, have the ids and logits
// of the processor, bit for bit. The models are those of models/, and the file that
// OUTRIDER_TEST_MODEL names.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/software_device.h"

namespace outrider {
namespace {

// What drafts, and the shape of its drafts.
struct Drafted {
  std::string drafter;
  const char* tree;
  bool is_right_often = true;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void expect_texts_of_the_processor(const std::filesystem::path& path, const std::string& device,
                                   const std::vector<Drafted>& all) {
  const auto load = [&](const std::string& where) {
    return Model::load(path, {.weights = "int8", .kv = "f32", .threads = 1, .device = where});
  };
  const GenerateOptions options = {.max_tokens = 16, .ignore_eos = true, .keep_logits = true};
  const auto generate = [&](const std::shared_ptr<const Model>& model,
                            const SpeculationOptions& speculation) {
    return Generator(model, speculation).generate("The capital of France is", options);
  };
  const GenerateResult here = generate(load(""), {});
  ASSERT_EQ(here.ids.size(), 16U);
  const auto there = load(device);
  for (const Drafted& drafted : all) {
    SCOPED_TRACE(path.filename().string() + " " + drafted.drafter + " " + drafted.tree);
    SpeculationOptions speculation;
    speculation.drafter = drafted.drafter;
    speculation.tree = drafted.tree;
    speculation.drafter_options = {.weights = "int8", .threads = 1, .device = device};
    const GenerateResult got = generate(there, speculation);
    EXPECT_EQ(got.ids, here.ids);
    EXPECT_TRUE(same_bits(got.logits, here.logits));
    EXPECT_EQ(got.statistics.drafted > 0, drafted.drafter != "none");
    if (drafted.is_right_often) {
      EXPECT_GT(got.statistics.accepted, 0);
    }
  }
}

TEST(RealDevice, RunsTheShippedModels) {
  const std::string device = test::software_device();
  if (device.empty()) GTEST_SKIP() << test::kNoSoftwareDevice;
  const std::filesystem::path models = std::filesystem::path(OUTRIDER_SOURCE_DIR) / "models";
  expect_texts_of_the_processor(models / "target", device,
                                {{"none", "", false},
                                 {"model:" + (models / "drafter").string(), "widths:3,2,1"},
                                 {"eagle:" + (models / "eagle").string(), ""}});
}

TEST(RealDevice, RunsAnotherModel) {
  const char* const path = std::getenv("OUTRIDER_TEST_MODEL");
  if (path == nullptr) GTEST_SKIP() << "OUTRIDER_TEST_MODEL names no model";
  const std::string device = test::software_device();
  if (device.empty()) GTEST_SKIP() << test::kNoSoftwareDevice;
  const std::string itself = std::string("model:") + path;
  expect_texts_of_the_processor(path, device,
                                {{"none", "", false},
                                 {"lookahead", "", false},
                                 {itself, "chain:length=4"},
                                 {itself, "widths:2,1,1"}});
}

}  // namespace
}  // namespace outrider
