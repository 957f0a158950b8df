#include "model/shared_output.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_model.h"

namespace outrider {
namespace {

constexpr int kDim = 64;
constexpr int kVocabulary = 300;

class SharedOutputs : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::TinyShape shape;
    shape.vocabulary_size = kVocabulary;
    shape.dim = kDim;
    testing::write_hugging_face(testing::make_tiny_model(shape), files_.path());
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
  std::vector<float> logits_of(auto& lender) {
    ForwardOutput output;
    lender.project(features_, output);
    EXPECT_EQ(output.n_rows, 3);
    EXPECT_EQ(output.vocabulary_size, kVocabulary);
    EXPECT_EQ(output.feature_width, 0);
    output.logits.resize(std::size_t{3} * kVocabulary);
    return output.logits;
  }
  static bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }

  testing::TemporaryDirectory files_;
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

// A copy is made of what the file has, not of what the target made of it: its logits are those of a
// target that was loaded in the copy's kind of weights.
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
