// SPDX-License-Identifier: Apache-2.0
// GenerateOptions::on_draft on a tiny random pair: the rounds' drafts as they are judged and
// committed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "outrider/generate.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

constexpr const char* kPrompt = "A small test.";

struct Draft {
  std::vector<TokenId> tokens;
  std::vector<int> parents;
  std::vector<std::uint8_t> accepted;
};

struct SeenToken {
  TokenId id = kNoToken;
  TokenOrigin origin = TokenOrigin::plain;
  int rank = -1;
};

struct Round {
  Draft draft;
  std::vector<SeenToken> tokens;
};

class DraftEvents : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<test::TemporaryDirectory>();
    test::write_tiny_pair(directory_->path());
    model_ = Model::load(directory_->path() / "target", {.threads = 1});
  }
  static void TearDownTestSuite() {
    model_.reset();
    directory_.reset();
  }

  static Generator make(const std::string& tree, const std::string& verify) {
    return Generator(model_, {.drafter = "model:" + (directory_->path() / "draft").string(),
                              .tree = tree,
                              .verify = verify,
                              .drafter_options = {.threads = 1}});
  }

  // Generates and records the callbacks' arguments.
  static GenerateResult watch(Generator& generator, GenerateOptions options,
                              std::vector<Round>& rounds) {
    options.on_draft = [&rounds](const DraftEvent& event) {
      rounds.push_back({{{event.tokens.begin(), event.tokens.end()},
                         {event.parents.begin(), event.parents.end()},
                         {event.accepted.begin(), event.accepted.end()}},
                        {}});
    };
    options.on_token = [&rounds](const TokenEvent& event) {
      ASSERT_FALSE(rounds.empty());
      rounds.back().tokens.push_back({event.id, event.origin, event.rank});
    };
    return generator.generate(kPrompt, options);
  }

  // A drafted token's index among its siblings.
  static int rank_of(const Draft& draft, std::size_t node) {
    const auto end = draft.parents.begin() + static_cast<std::ptrdiff_t>(node);
    return static_cast<int>(std::count(draft.parents.begin(), end, draft.parents[node]));
  }

  // The accepted tokens form a path and equal the committed ones: all of them, unless the text
  // ended.
  static void check(const Round& round, bool is_last) {
    const Draft& draft = round.draft;
    ASSERT_EQ(draft.parents.size(), draft.tokens.size());
    ASSERT_EQ(draft.accepted.size(), draft.tokens.size());
    std::vector<std::size_t> path;
    for (std::size_t node = 0; node < draft.tokens.size(); ++node) {
      EXPECT_GE(draft.parents[node], -1);
      EXPECT_LT(draft.parents[node], static_cast<int>(node));
      if (draft.accepted[node] == 0) continue;
      EXPECT_EQ(draft.parents[node], path.empty() ? -1 : static_cast<int>(path.back()));
      path.push_back(node);
    }
    std::size_t n_accepted = 0;
    for (const SeenToken& token : round.tokens) {
      if (token.origin != TokenOrigin::accepted) continue;
      ASSERT_LT(n_accepted, path.size());
      EXPECT_EQ(token.id, draft.tokens[path[n_accepted]]);
      EXPECT_EQ(token.rank, rank_of(draft, path[n_accepted]));
      ++n_accepted;
    }
    if (!is_last) {
      EXPECT_EQ(n_accepted, path.size());
    }
  }

  static inline std::unique_ptr<test::TemporaryDirectory> directory_;
  static inline std::shared_ptr<const Model> model_;
};

TEST_F(DraftEvents, AreWhatIsJudgedAndChangeNothing) {
  for (const char* const tree :
       {"chain:length=4", "widths:3,2,2", "dynamic:total=20,depth=5,topk=4"}) {
    for (const char* const verify : {"exact", "coupled"}) {
      for (const double temperature : {0.0, 1.0}) {
        SCOPED_TRACE(std::string(tree) + " " + verify);
        const GenerateOptions options{.max_tokens = 60,
                                      .sampling = {.temperature = temperature},
                                      .seed = 5,
                                      .ignore_eos = true,
                                      .keep_logits = true};
        Generator generator = make(tree, verify);
        const GenerateResult unseen = generator.generate(kPrompt, options);
        std::vector<Round> rounds;
        const GenerateResult seen = watch(generator, options, rounds);
        EXPECT_EQ(seen.ids, unseen.ids);
        EXPECT_EQ(seen.logits, unseen.logits);
        EXPECT_EQ(static_cast<std::int64_t>(rounds.size()), seen.statistics.target_passes);
        std::int64_t n_drafted = 0;
        std::vector<TokenId> ids;
        for (const Round& round : rounds) {
          check(round, &round == &rounds.back());
          n_drafted += static_cast<std::int64_t>(round.draft.tokens.size());
          for (const SeenToken& token : round.tokens) ids.push_back(token.id);
        }
        EXPECT_EQ(n_drafted, seen.statistics.drafted);
        EXPECT_EQ(ids, seen.ids);
      }
    }
  }
}

TEST_F(DraftEvents, AreEmptyWhereNothingIsDrafted) {
  Generator generator(model_);
  std::vector<Round> rounds;
  const GenerateResult result = watch(generator, {.max_tokens = 20, .ignore_eos = true}, rounds);
  EXPECT_EQ(rounds.size(), result.ids.size());
  for (const Round& round : rounds) {
    EXPECT_TRUE(round.draft.tokens.empty());
    EXPECT_EQ(round.tokens.size(), 1U);
  }
}

}  // namespace
}  // namespace outrider
