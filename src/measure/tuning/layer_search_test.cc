// SPDX-License-Identifier: Apache-2.0
// The search over subsets with made-up scores, and a set's predicted value against actual drafts.
// Times of models this small mean nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/text_beginnings.h"
#include "measure/tuning/skip_search.h"
#include "model/config.h"
#include "model/language_model.h"
#include "outrider/error.h"
#include "outrider/tune.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Layers = std::vector<int>;

TEST(SearchSubsets, TriesAllWhereThereAreFew) {
  std::set<Layers> tried;
  search_subsets(4, 14, 0, [&](const Layers& layers) {
    EXPECT_TRUE(std::is_sorted(layers.begin(), layers.end()));
    EXPECT_TRUE(tried.insert(layers).second);
    return 0.0;
  });
  EXPECT_THAT(tried, SizeIs(14));
  EXPECT_FALSE(tried.contains(Layers{}));
  EXPECT_FALSE(tried.contains(Layers{0, 1, 2, 3}));
}

TEST(SearchSubsets, NeverTriesASubsetTwiceAndKeepsToItsTrials) {
  for (const int n_trials : {1, 3, 13, 60, 61, 62}) {
    std::set<Layers> tried;
    search_subsets(6, n_trials, 5, [&](const Layers& layers) {
      EXPECT_TRUE(tried.insert(layers).second);
      EXPECT_THAT(layers.size(), ::testing::AllOf(::testing::Ge(1U), ::testing::Le(5U)));
      return static_cast<double>(layers.size() % 3);
    });
    EXPECT_THAT(tried, SizeIs(n_trials));
  }
}

TEST(SearchSubsets, GoTheSameWayAgainForTheSameScores) {
  const auto way = [](std::uint64_t seed) {
    std::vector<Layers> tried;
    search_subsets(20, 80, seed, [&](const Layers& layers) {
      tried.push_back(layers);
      return std::cos(static_cast<double>(layers.front() * 7 + layers.back()));
    });
    return tried;
  };
  EXPECT_EQ(way(1), way(1));
  EXPECT_NE(way(1), way(2));
}

TEST(SearchSubsets, BeginsWithEverySingleLayer) {
  std::vector<Layers> tried;
  search_subsets(40, 50, 0, [&](const Layers& layers) {
    tried.push_back(layers);
    return 1.0;
  });
  ASSERT_THAT(tried, SizeIs(50));
  for (int layer = 0; layer < 40; ++layer) {
    EXPECT_THAT(tried[static_cast<std::size_t>(layer)], ElementsAre(layer));
  }
}

// Each skipped layer adds its value, which may be negative; skipping two neighbours costs extra.
double made_up_score(const Layers& layers) {
  double score = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    score += std::sin(2.0 * layers[i] + 1);
    if (i > 0 && layers[i] == layers[i - 1] + 1) score -= 0.7;
  }
  return score;
}

TEST(SearchSubsets, FindsBetterThanChanceDoes) {
  constexpr int kLayers = 24;
  constexpr int kTrials = 200;
  // The best possible score, by dynamic programming over layers.
  std::vector<double> best = {0, -1e9};  // the last layer is kept; is skipped
  for (int layer = 0; layer < kLayers; ++layer) {
    const double worth = std::sin(2.0 * layer + 1);
    best = {std::max(best[0], best[1]), std::max(best[0], best[1] - 0.7) + worth};
  }
  const double most = std::max(best[0], best[1]);
  double sum = 0;
  double chance = 0;
  constexpr int kSeeds = 10;
  std::mt19937 random(1);
  for (int seed = 0; seed < kSeeds; ++seed) {
    double found = -1e9;
    search_subsets(kLayers, kTrials, static_cast<std::uint64_t>(seed), [&](const Layers& layers) {
      found = std::max(found, made_up_score(layers));
      return made_up_score(layers);
    });
    EXPECT_LE(found, most + 1e-12);
    sum += found;
    double luck = -1e9;
    for (int trial = 0; trial < kTrials; ++trial) {
      Layers layers;
      for (int layer = 0; layer < kLayers; ++layer) {
        if (random() % 2 == 0) layers.push_back(layer);
      }
      luck = std::max(luck, made_up_score(layers));
    }
    chance += luck;
  }
  // It reaches all but a fiftieth of the best; random search stays far behind.
  EXPECT_GT(sum / kSeeds, 0.98 * most);
  EXPECT_LT(chance / kSeeds, 0.9 * most);
}

class SearchLayers : public ::testing::Test {
 protected:
  void SetUp() override {
    test::TinyShape shape;
    shape.seed = 9;
    shape.n_layers = 4;
    test::write_hugging_face(test::make_tiny_model(shape), folder_.path() / "target");
    model_ = Model::load(folder_.path() / "target", {.threads = 1});
    test::write_tiny_texts(folder_.path() / "text.txt");
  }
  LayerSearchOptions quick() const {
    LayerSearchOptions options;
    options.texts.paths = {folder_.path() / "text.txt"};
    options.texts.separator = "|";
    options.texts.count = 3;
    options.texts.prompt_tokens = 5;
    options.texts.max_tokens = 30;
    options.rounds = 1;
    return options;
  }

  test::TemporaryDirectory folder_;
  std::shared_ptr<const Model> model_;
};

TEST_F(SearchLayers, SaysHowOftenADraftStands) {
  for (const double temperature : {0.0, 1.0}) {
    LayerSearchOptions options = quick();
    options.texts.sampling.temperature = temperature;
    const std::vector<SkippedLayers> sets = search_layers(model_, options);
    ASSERT_THAT(sets, SizeIs(14));  // all possible sets
    for (std::size_t i = 1; i < sets.size(); ++i) {
      EXPECT_GE(sets[i - 1].speedup, sets[i].speedup);
      EXPECT_LE(sets[i].cost, 1);
    }
    const auto beginnings = text_beginnings(model_->tokenizer(), options.texts, "test");
    for (const SkippedLayers& set : {sets.front(), sets.back()}) {
      // The same by drafting one token after every prefix of the target's own texts. At temperature
      // 1 each is sampled anew, so means agree within the sampling error.
      Generator drafting(model_, {.drafter = set.drafter(), .tree = "chain:length=1"});
      Generator plain(model_);
      double accepted = 0;
      double n_drafts = 0;
      for (std::size_t text = 0; text < beginnings.size(); ++text) {
        GenerateOptions sampled{.max_tokens = 30, .ignore_eos = true};
        sampled.sampling = options.texts.sampling;
        sampled.seed = text;
        GenerateRequest request{.prompt = beginnings[text], .options = sampled};
        const auto ids = plain.generate({&request, 1}).front().ids;
        for (const TokenId id : ids) {
          for (std::uint64_t seed = 0; seed < (temperature > 0 ? 8 : 1); ++seed) {
            request.options.max_tokens = 2;
            request.options.seed = seed + 100 * request.prompt.size();
            accepted +=
                static_cast<double>(drafting.generate({&request, 1}).front().statistics.accepted);
            n_drafts += 1;
          }
          request.prompt.push_back(id);
        }
      }
      if (temperature == 0) {
        EXPECT_DOUBLE_EQ(set.acceptance, accepted / n_drafts) << set.drafter();
      } else {
        // 90 tokens, each with a standard deviation of at most one half.
        EXPECT_NEAR(set.acceptance, accepted / n_drafts, 4 * 0.5 / std::sqrt(90.0))
            << set.drafter();
      }
    }
  }
}

TEST_F(SearchLayers, TriesTheSameSetsAgain) {
  const std::vector<SkippedLayers> first = search_layers(model_, quick());
  const std::vector<SkippedLayers> second = search_layers(model_, quick());
  for (const SkippedLayers& set : first) {
    const auto at = std::find_if(second.begin(), second.end(),
                                 [&](const auto& other) { return other.layers == set.layers; });
    ASSERT_NE(at, second.end());
    EXPECT_EQ(at->acceptance, set.acceptance);
  }
}

// A layer whose keys others read is skipped together with all of these, or kept.
TEST_F(SearchLayers, LeavesNoKeysUnwrittenThatAreRead) {
  const auto model =
      Model::load(test::golden_directory("gemma4_shared") / "model.gguf", {.threads = 1});
  const ModelConfig& config = model->language_model().config();
  LayerSearchOptions options = quick();
  options.trials = 126;  // all possible sets
  const std::vector<SkippedLayers> sets = search_layers(model, options);
  // Of seven layers, 4 and 5 read the keys of 2, and 6 those of 3. 2 is kept, or skipped with both.
  // Of 3 and 6, both are kept, both skipped, or just 6 is skipped. The other two are free; neither
  // none nor all are skipped.
  EXPECT_THAT(sets, SizeIs((4 + 1) * 3 * 4 - 2));
  for (const SkippedLayers& set : sets) EXPECT_FALSE(unreadable_keys(config, set.layers));
}

TEST_F(SearchLayers, RefusesWhatCannotBeMeant) {
  const auto message = [this](auto change) -> std::string {
    LayerSearchOptions options = quick();
    change(options);
    try {
      search_layers(model_, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message([](auto& options) { options.texts.paths.clear(); }), HasSubstr("texts"));
  EXPECT_THAT(message([](auto& options) { options.texts.count = 0; }), HasSubstr("texts"));
  EXPECT_THAT(message([](auto& options) { options.texts.prompt_tokens = 0; }), HasSubstr("prompt"));
  EXPECT_THAT(message([](auto& options) { options.texts.max_tokens = 0; }),
              HasSubstr("max_tokens"));
  EXPECT_THAT(message([](auto& options) { options.texts.prompt_tokens = 1 << 20; }),
              HasSubstr("room"));
  EXPECT_THAT(message([](auto& options) { options.trials = 0; }), HasSubstr("trials"));
  EXPECT_THAT(message([](auto& options) { options.rounds = 0; }), HasSubstr("rounds"));
  EXPECT_THAT(message([](auto& options) { options.texts.sampling.top_p = 2; }), HasSubstr("top-p"));
}

TEST_F(SearchLayers, EndsWhereProgressThrows) {
  LayerSearchOptions options = quick();
  options.trials = 5;
  double last = 0;
  int n_calls = 0;
  options.progress = [&](std::string_view, double share) {
    EXPECT_GE(share, last);
    EXPECT_LE(share, 1);
    last = share;
    ++n_calls;
  };
  EXPECT_THAT(search_layers(model_, options), SizeIs(5));
  for (const int end : {1, 6, n_calls}) {
    int n = 0;
    options.progress = [&](std::string_view, double) {
      if (++n == end) throw std::runtime_error("enough");
    };
    EXPECT_THROW(search_layers(model_, options), std::runtime_error);
  }
}

}  // namespace
}  // namespace outrider
