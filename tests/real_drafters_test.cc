// The contract suite on real weights: for every drafter, sampled tokens follow the target, by the
// integral transform (tests/support/real_pair.h).
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/spec.h"
#include "engine/make_rule.h"
#include "engine/make_tree_shape.h"
#include "outrider/error.h"
#include "speculate/decoder.h"
#include "speculate/drafter_registry.h"
#include "tests/support/drafter_cases.h"
#include "tests/support/drafter_worlds.h"
#include "tests/support/real_pair.h"

namespace outrider {
namespace {

using testing::DrafterCase;
using testing::IntegralTransform;
using testing::kDrafterCases;
using testing::nightly;
using testing::RealPair;

class DraftersOnRealPair : public ::testing::TestWithParam<DrafterCase> {};

TEST_P(DraftersOnRealPair, EmittedTokensFollowTheTarget) {
  RealPair* pair = RealPair::load();
  if (pair == nullptr) GTEST_SKIP() << "no shared data folder";
  const std::filesystem::path models = std::filesystem::path(OUTRIDER_SHARED_DATA) / "models";
  const DrafterMaterials materials = {
      .target = &pair->target(),
      .vocabulary_size = pair->target().config().vocabulary_size,
      .load = {.n_threads = 1},
      .load_model =
          [&](const std::filesystem::path&) {
            return load_model(models / "weak260K", {.n_threads = 1});
          },
      .tokenize = [&](std::string_view) { return pair->story(0); },
      .vocabulary_id = [] { return testing::DrafterFiles::get().vocabulary(); }};
  const DrafterPlan plan = testing::plan_of(GetParam());
  const std::size_t n_tokens = nightly() ? 1'000'000 : 10'000;
  std::uint64_t seed = 100;
  for (const std::string verify : {"exact", "traversal"}) {
    for (const std::string tree : {"", "widths:3,2,1"}) {
      SCOPED_TRACE(verify + " " + tree);
      std::unique_ptr<Drafter> drafter;
      try {
        drafter = plan.make(materials);
      } catch (const Error& error) {
        GTEST_SKIP() << "the suite's files are for another model: " << error.what();
      }
      const Judging judging = make_judging("exact", verify);
      Decoder decoder(pair->target(), drafter.get(), *judging.acceptance,
                      tree.empty() ? plan.shape : make_tree_shape(tree), nullptr);
      IntegralTransform transformed(seed++);
      std::int64_t n_drafted = 0;
      testing::continue_stories(
          *pair, decoder, {.temperature = 0.8, .top_k = 40},
          [&](Stream& stream, const Committed& committed) {
            transformed.add(stream, committed);
            n_drafted += stream.tree.n_drafted();
            return false;
          },
          [&] { return transformed.n_tokens() >= n_tokens; });
      transformed.expect_uniform_and_independent();
      EXPECT_GT(n_drafted, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, DraftersOnRealPair, ::testing::ValuesIn(kDrafterCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace outrider
