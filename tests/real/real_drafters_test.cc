// SPDX-License-Identifier: Apache-2.0
// The contract suite on real weights: for every drafter, sampled tokens follow the target's
// distribution, by the integral transform (tests/support/models/real_pair.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/drafting/make_tree_shape.h"
#include "outrider/datastore.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "speculate/decoder.h"
#include "speculate/drafters/own_drafter.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/rules/make_rule.h"
#include "tests/support/models/real_pair.h"
#include "tests/support/pairs_of_the_day.h"
#include "tests/support/proofs/drafter_cases.h"
#include "tests/support/proofs/own_drafters.h"
#include "tests/support/temporary_directory.h"
#include "tokenizer/same_vocabulary.h"

namespace outrider {
namespace {

using test::DrafterCase;
using test::IntegralTransform;
using test::kDrafterCases;
using test::nightly;
using test::RealPair;

// The files that specs name, as DrafterFiles has them for the tiny pair.
class RealFiles {
 public:
  RealFiles() : tokenizer_(Tokenizer::load(models() / "stories260K")) {
    std::ifstream stories(models().parent_path() / "text" / "tinystories_2MiB.txt");
    std::string text{std::istreambuf_iterator<char>(stories), {}};
    text.resize(std::min<std::size_t>(text.size(), 40000));
    const std::filesystem::path file = directory_.path() / "stories.txt";
    std::ofstream(file) << text;
    build_datastore(*tokenizer_, {&file, 1}, directory_.path() / "store");
  }
  static std::filesystem::path models() {
    return std::filesystem::path(OUTRIDER_SHARED_DATA) / "models";
  }
  std::string spec(const DrafterCase& drafter) const {
    return fmt::format(fmt::runtime(drafter.spec),
                       fmt::arg("draft", (models() / "weak260K").string()),
                       fmt::arg("text", (directory_.path() / "stories.txt").string()),
                       fmt::arg("store", (directory_.path() / "store").string()));
  }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  test::TemporaryDirectory directory_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

struct Way {
  std::string drafter;
  std::string verify;
  std::string tree;  // empty: the drafter's own
  std::uint64_t seed = 0;
};

// By day a drafter has both verifications and both trees, which meet with other drafters; in
// nightly runs all.
const std::vector<Way>& ways_of_the_day() {
  static const std::vector<Way> kWays = [] {
    std::vector<Way> all;
    for (const DrafterCase& drafter : kDrafterCases) {
      std::uint64_t seed = 100;
      for (const char* verify : {"exact", "traversal"}) {
        for (const char* tree : {"", "widths:3,2,1"}) {
          all.push_back({drafter.name, verify, tree, seed++});
        }
      }
    }
    return test::pairs_of_the_day(all, [](const Way& way) {
      return test::CaseValues{way.drafter, way.verify, way.tree};
    });
  }();
  return kWays;
}

class DraftersOnRealPair : public ::testing::TestWithParam<DrafterCase> {};

TEST_P(DraftersOnRealPair, EmittedTokensFollowTheTarget) {
  RealPair* pair = RealPair::load();
  if (pair == nullptr) GTEST_SKIP() << "no shared data folder";
  const RealFiles files;
  std::string spec;
  try {
    spec = files.spec(GetParam());
  } catch (const fmt::format_error&) {
    GTEST_SKIP() << "a file of its spec exists for the tiny pair alone";
  }
  const DrafterMaterials materials = {
      .target = &pair->target(),
      .target_path = RealFiles::models() / "stories260K",
      .vocabulary_size = pair->target().config().vocabulary_size,
      .load = {.n_threads = 1},
      .load_model = [](const std::filesystem::path& path,
                       const LoadOptions& as) { return load_model(path, as); },
      .tokenize = [&](std::string_view text,
                      std::string_view) { return files.tokenizer().encode(text, false); },
      .vocabulary_id = [&] { return vocabulary_id(files.tokenizer()); }};
  const DrafterPlan plan =
      GetParam().own == test::Own::none
          ? read_drafter(spec)
          : read_own_drafter(Spec::parse("drafter", spec), test::make_own(GetParam().own));
  const std::size_t n_tokens = nightly() ? 1'000'000 : 10'000;
  int n_ways = 0;
  for (const auto& [name, verify, tree, seed] : ways_of_the_day()) {
    if (name != GetParam().name) continue;
    SCOPED_TRACE(verify + " " + tree);
    std::unique_ptr<Drafter> drafter;
    try {
      drafter = plan.make(materials);
    } catch (const Error& error) {  // Heads that do not exist for this target.
      GTEST_SKIP() << error.what();
    }
    const Verification verification = make_verification("exact", verify);
    Decoder decoder(pair->target(), drafter.get(), *verification.acceptance,
                    tree.empty() ? plan.shape : make_tree_shape(tree), nullptr);
    IntegralTransform transformed(seed);
    std::int64_t n_drafted = 0;
    test::continue_stories(
        *pair, decoder, {.temperature = 0.8, .top_k = 40},
        [&](Stream& stream, const Committed& committed) {
          transformed.add(stream, committed);
          n_drafted += stream.tree.n_drafted();
          return false;
        },
        [&] { return transformed.n_tokens() >= n_tokens; });
    transformed.expect_uniform_and_independent();
    EXPECT_GT(n_drafted, 0);
    ++n_ways;
  }
  EXPECT_GE(n_ways, 2);
}

INSTANTIATE_TEST_SUITE_P(, DraftersOnRealPair, ::testing::ValuesIn(kDrafterCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace outrider
