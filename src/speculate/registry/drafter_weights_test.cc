// SPDX-License-Identifier: Apache-2.0
#include "speculate/registry/drafter_weights.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/error.h"
#include "speculate/registry/drafter_registry.h"
#include "tests/support/models/table_model.h"

namespace outrider {
namespace {

using kernels::WeightKind;
using test::TableModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kVocabulary = 3;

// The weight formats in which a spec's models are loaded if the default is bf16.
std::vector<std::optional<WeightKind>> loaded_as(const std::string& spec) {
  TableModel target(kVocabulary, 1);
  std::vector<std::optional<WeightKind>> kinds;
  const auto note = [&kinds](const LoadOptions& as) {
    kinds.push_back(as.weights);
    EXPECT_EQ(as.n_threads, 7);  // nothing else changes
    EXPECT_EQ(as.kv, kernels::KvKind::int8);
    return std::make_unique<TableModel>(kVocabulary, 2);
  };
  DrafterMaterials materials;
  materials.target = &target;
  materials.vocabulary_size = kVocabulary;
  materials.load = {.weights = WeightKind::bf16, .kv = kernels::KvKind::int8, .n_threads = 7};
  materials.load_model = [&](const std::filesystem::path&, const LoadOptions& as) {
    return note(as);
  };
  materials.load_foreign = [&](const std::filesystem::path&, const LoadOptions& as) {
    const VocabularyTranslation same{.spelled = {{0}, {1}, {2}}, .shared = {0, 1, 2}};
    return ForeignModel{.model = note(as), .forth = same, .back = same};
  };
  EXPECT_NE(read_drafter(spec).make(materials), nullptr);
  return kinds;
}

TEST(DrafterWeights, AreTheSpecsOwnOrThoseOfAll) {
  EXPECT_THAT(loaded_as("model:a"), ElementsAre(WeightKind::bf16));
  EXPECT_THAT(loaded_as("model:a,weights=f32"), ElementsAre(WeightKind::f32));
  EXPECT_THAT(loaded_as("model:a,weights=bf16"), ElementsAre(WeightKind::bf16));
  EXPECT_THAT(loaded_as("model:a,weights=int8"), ElementsAre(WeightKind::int8));
  EXPECT_THAT(loaded_as("model:a,weights=int4,length=3"), ElementsAre(WeightKind::int4));
  EXPECT_THAT(loaded_as("model:a,vocabulary=shared,weights=int8"), ElementsAre(WeightKind::int8));
  EXPECT_THAT(loaded_as("model:a,vocabulary=text,weights=int8"), ElementsAre(WeightKind::int8));
}

TEST(DrafterWeights, OfPartsAreEachPartsOwn) {
  EXPECT_THAT(loaded_as("staged:model:a,weights=int8+model:b"),
              ::testing::UnorderedElementsAre(WeightKind::int8, WeightKind::bf16));
  EXPECT_THAT(loaded_as("cascade:chow:alpha=0.1+model:a+model:b,weights=int4"),
              ::testing::UnorderedElementsAre(WeightKind::bf16, WeightKind::int4));
}

TEST(DrafterWeights, OtherNamesAreRefusedWithThoseThereAre) {
  for (const std::string_view spec : {"model:a,weights=int16", "eagle:a,weights=", "mtp:weights=8",
                                      "medusa:a,weights=Q8_0", "staged:model:a,weights=q+ngram"}) {
    try {
      read_drafter(spec);
      ADD_FAILURE() << spec << " was read";
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("one of f32, bf16, int8, int4")) << spec;
    }
  }
}

}  // namespace
}  // namespace outrider
