// SPDX-License-Identifier: Apache-2.0
// Texts drafted by the target's own multi-token prediction module (DeepSeek-V3, GLM-4.5, Qwen3.5,
// Qwen3-Next) have the bits of plain ones, in chains and trees. The drafts are those of the golden
// program.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/load_model.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/goldens/golden_modules.h"
#include "tests/support/proofs/drafted_text.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::draft_text;
using test::GoldenModule;

// A module's golden, and the format of the weights.
using Target = std::tuple<std::string, const char*>;

class ModuleDrafts : public ::testing::TestWithParam<Target> {};

TEST_P(ModuleDrafts, HaveTheBitsOfPlainTexts) {
  const auto& [name, weights] = GetParam();
  const GoldenModule golden(name);
  const std::vector<TokenId> prompt = test::GoldenModel(golden.base).ids;
  const auto target = Model::load(golden.gguf(), {.weights = weights, .threads = 2});
  test::expect_bits_of_plain_texts(target, prompt, {"mtp", "mtp:weights=int4"});
}

INSTANTIATE_TEST_SUITE_P(All, ModuleDrafts,
                         ::testing::Combine(::testing::ValuesIn(test::golden_modules()),
                                            ::testing::Values("f32", "int8")),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param);
                         });

class ModuleDraftsGolden : public ::testing::TestWithParam<std::string> {};

// A chain after the golden text, by a drafter with the spec "mtp".
TEST_P(ModuleDraftsGolden, AreTheTokensOfTheProgram) {
  const GoldenModule golden(GetParam());
  const test::TemporaryDirectory directory;
  golden.write_directory(directory.path());
  for (const std::filesystem::path& path : {directory.path(), golden.gguf()}) {
    SCOPED_TRACE(path.string());
    const auto target = test::load_f32(path);
    const auto drafter = read_drafter("mtp").make(
        {.target = target.get(),
         .target_path = path,
         .vocabulary_size = target->config().vocabulary_size,
         .load = {.weights = WeightKind::f32, .kv = kernels::KvKind::f32, .n_threads = 2}});
    EXPECT_EQ(drafter->name(), "mtp");
    const std::size_t n_drafted = golden.tokens.size() - golden.n_text;
    const auto acceptance = make_multi_round(std::make_shared<ExactRule>());
    Decoder decoder(*target, drafter.get(), *acceptance, chain_shape(static_cast<int>(n_drafted)),
                    nullptr);
    CounterChance chance(1);
    Stream stream(
        1,
        {golden.tokens.begin(), golden.tokens.begin() + static_cast<std::ptrdiff_t>(golden.n_text)},
        Transform({.temperature = 0}, target->config().vocabulary_size), chance);
    stream.max_total = target->config().context_length;
    decoder.begin(stream);
    Stream* const streams[] = {&stream};
    decoder.round(streams, [](Stream&, const Committed&) { return false; });
    ASSERT_EQ(stream.tree.n_drafted(), static_cast<int>(n_drafted));
    for (std::size_t i = 0; i < n_drafted; ++i) {
      EXPECT_EQ(stream.tree.node(static_cast<int>(i) + 1).token, golden.tokens[golden.n_text + i]);
    }
    decoder.end(stream);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModuleDraftsGolden, ::testing::ValuesIn(test::golden_modules()),
                         [](const auto& info) { return info.param; });

// "auto" drafts with the module in the target's own file.
TEST(ModuleDrafts, AreFoundByAuto) {
  const GoldenModule golden("qwen3_5");
  const auto target = Model::load(golden.gguf(), {.weights = "f32", .threads = 2});
  const std::vector<TokenId> prompt = test::GoldenModel(golden.base).ids;
  const GenerateResult plain = draft_text(target, prompt, 0, {});
  const GenerateResult drafted = draft_text(target, prompt, 0, {.drafter = "auto"});
  EXPECT_EQ(drafted.ids, plain.ids);
  EXPECT_EQ(drafted.logits, plain.logits);
}

}  // namespace
}  // namespace outrider
