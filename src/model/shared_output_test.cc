// SPDX-License-Identifier: Apache-2.0
#include "model/shared_output.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/heads/eagle_head.h"
#include "model/heads/medusa_heads.h"
#include "model/heads/mtp_modules.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/models/tiny_heads.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

constexpr int kDim = 64;
constexpr int kVocabulary = 300;

class SharedOutputs : public ::testing::Test {
 protected:
  void SetUp() override {
    shape_.vocabulary_size = kVocabulary;
    shape_.dim = kDim;
    test::write_hugging_face(test::make_tiny_model(shape_), files_.path());
    for (std::size_t i = 0; i < 3 * kDim; ++i) {
      features_.push_back(static_cast<float>(i % 17) / 8.0F - 1.0F);
    }
  }

  std::unique_ptr<LanguageModel> target_as(WeightKind kind) {
    return load_model(files_.path(), {.weights = kind, .n_threads = 2});
  }
  static SharedOutput shared(LanguageModel& target, std::optional<WeightKind> kind) {
    return {target, make_weight_options({.weights = kind, .n_threads = 2})};
  }
  static std::vector<float> all_of(const ForwardOutput& output) {
    const std::span<const float> values = output.logits.values();
    return {values.begin(), values.end()};
  }
  std::vector<float> logits_of(auto& lender) {
    ForwardOutput output;
    lender.project(features_, output);
    EXPECT_EQ(output.logits.n_rows(), 3);
    EXPECT_EQ(output.logits.vocabulary_size(), kVocabulary);
    EXPECT_EQ(output.feature_width, 0);
    return all_of(output);
  }
  static bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }

  // The head's logits, with these weights, for the token after one with that state.
  static std::vector<float> logits_of_head(FeatureHead& head, std::span<const float> state) {
    const auto sequence = head.open({});
    const std::vector<TokenId> token = {5};
    const TokenBlock block{
        .sequence = sequence.get(), .tokens = token, .parents = {}, .features = state};
    ForwardOutput output;
    head.forward({&block, 1}, {}, output);
    return all_of(output);
  }

  test::TinyShape shape_;
  test::TemporaryDirectory files_;
  std::vector<float> features_;  // (3, kDim)
};

TEST_F(SharedOutputs, AreTheTargetsOwnUnlessFewerBitsAreAskedFor) {
  const auto target = target_as(WeightKind::bf16);
  const std::vector<float> own = logits_of(*target);
  for (const std::optional<WeightKind> kind :
       {std::optional<WeightKind>{}, std::optional(WeightKind::f32),
        std::optional(WeightKind::bf16)}) {
    SharedOutput output = shared(*target, kind);
    EXPECT_FALSE(output.is_copy());
    EXPECT_TRUE(same_bits(logits_of(output), own));
  }
  const auto quantized = target_as(WeightKind::int4);
  EXPECT_FALSE(shared(*quantized, WeightKind::int8).is_copy());
}

// A copy is made from the file's weights, not from the target's rounded ones: its logits are those
// of a target loaded in the copy's format.
TEST_F(SharedOutputs, InFewerBitsAreThoseOfATargetOfTheseBits) {
  for (const WeightKind kind : {WeightKind::bf16, WeightKind::int8, WeightKind::int4}) {
    const auto target = target_as(WeightKind::f32);
    SharedOutput output = shared(*target, kind);
    EXPECT_TRUE(output.is_copy());
    const auto narrow = target_as(kind);
    const std::vector<float> logits = logits_of(output);
    EXPECT_TRUE(same_bits(logits, logits_of(*narrow)));
    EXPECT_FALSE(same_bits(logits, logits_of(*target)));
  }
}

// A head in int8 gives the same logits whether the target's matrix is int8 or the head has a copy.
TEST_F(SharedOutputs, InFewerBitsAreWhatHeadsDraftFrom) {
  const std::filesystem::path eagle = files_.path() / "eagle";
  const std::filesystem::path medusa = files_.path() / "medusa";
  test::write_eagle_head(shape_, eagle);
  test::write_medusa_heads(shape_, 1, false, medusa);
  test::write_mtp_modules(shape_, 1, files_.path());
  const std::span<const float> state = std::span(features_).first(kDim);
  const LoadOptions narrow = {.weights = WeightKind::int8, .n_threads = 1};
  const auto all_kinds = [&](LanguageModel& target) {
    ForwardOutput output;
    load_medusa_heads(medusa, target, narrow)->forward(0, state, output);
    return std::array{logits_of_head(*load_eagle_head(eagle, target, narrow), state),
                      logits_of_head(*load_mtp_modules(files_.path(), target, narrow)[0], state),
                      all_of(output)};
  };
  const auto wide_target = target_as(WeightKind::f32);
  const auto narrow_target = target_as(WeightKind::int8);
  const auto copied = all_kinds(*wide_target);
  const auto lent = all_kinds(*narrow_target);
  for (std::size_t kind = 0; kind < copied.size(); ++kind) {
    EXPECT_TRUE(same_bits(copied[kind], lent[kind])) << kind;
  }
}

TEST_F(SharedOutputs, RefuseHalfARow) {
  const auto target = target_as(WeightKind::f32);
  SharedOutput output = shared(*target, WeightKind::int8);
  features_.pop_back();
  ForwardOutput logits;
  EXPECT_THROW(output.project(features_, logits), Error);
  EXPECT_THROW(target->project(features_, logits), Error);
}

}  // namespace
}  // namespace outrider
