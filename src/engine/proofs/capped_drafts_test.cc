// SPDX-License-Identifier: Apache-2.0
// Drafted texts of a target with soft caps and windows (Gemma 2) have the bits of plain ones,
// whatever the drafter and the draft's shape.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/tiny_heads.h"
#include "tests/support/proofs/drafted_text.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::golden_directory;

struct Drafting {
  std::string drafter;
  std::string tree;
};

class CappedDrafts : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    test::TinyShape shape;  // of the target
    shape.vocabulary_size = 97;
    shape.dim = 24;
    shape.n_heads = 4;
    shape.n_kv_heads = 2;
    shape.head_dim = 8;
    shape.hidden_dim = 36;
    test::write_eagle_head(shape, heads_.path() / "eagle");
    test::write_medusa_heads(shape, 2, false, heads_.path() / "medusa");
    const auto gguf = [](const char* name) {
      return std::string("model:") + (golden_directory(name) / "model.gguf").string();
    };
    const auto head = [&](const char* kind) {
      return std::string(kind) + ":" + (heads_.path() / kind).string();
    };
    drafters_ = {{gguf("gemma2_capped"), "chain:length=4"},
                 {gguf("gemma2_capped") + ",weights=int4", "widths:3,2,1"},
                 {gguf("gemma3_scaled"), "dynamic:total=12,depth=4,topk=3"},
                 {"suffix", "chain:length=5"},
                 {head("eagle"), "widths:2,2"},
                 {head("medusa"), "chain:length=2"}};
  }

  test::TemporaryDirectory heads_;
  std::vector<Drafting> drafters_;
};

TEST_P(CappedDrafts, HaveTheBitsOfPlainTexts) {
  const test::GoldenModel golden("gemma2_capped");
  const auto target =
      Model::load(golden.directory / "model.gguf", {.weights = GetParam(), .threads = 2});
  const auto generate = [&](const SpeculationOptions& speculation, double temperature) {
    return test::draft_text(target, golden.ids, temperature, speculation);
  };
  for (const double temperature : {0.0, 1.0}) {
    const GenerateResult plain = generate({}, temperature);
    if (temperature == 0 && std::string(GetParam()) == "f32") {
      EXPECT_EQ(std::vector(plain.ids.begin(), plain.ids.begin() + 32), golden.greedy);
    }
    for (const auto& [drafter, tree] : drafters_) {
      const std::string verify = temperature == 0 ? "exact" : "coupled";
      const GenerateResult drafted =
          generate({.drafter = drafter, .tree = tree, .verify = verify}, temperature);
      EXPECT_GT(drafted.statistics.drafted, 0) << drafter;
      EXPECT_EQ(drafted.ids, plain.ids) << drafter << " " << tree << " at " << temperature;
      EXPECT_EQ(drafted.logits, plain.logits) << drafter << " " << tree << " at " << temperature;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Weights, CappedDrafts, ::testing::Values("f32", "bf16", "int8"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace outrider
