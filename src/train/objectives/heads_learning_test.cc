// SPDX-License-Identifier: Apache-2.0
// Heads learn from the target's own text, a resumed run equals an uninterrupted one, and the text
// is the target's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "model/load_model.h"
#include "outrider/error.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/rules/make_rule.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/one_batch.h"
#include "tests/support/proofs/written_text.h"
#include "tests/support/temporary_directory.h"
#include "train/batches/corpus.h"
#include "train/batches/generated_source.h"
#include "train/objective.h"
#include "train/objectives/block_head.h"
#include "train/objectives/eagle.h"
#include "train/objectives/eagle3.h"
#include "train/objectives/medusa.h"
#include "train/objectives/mtp.h"
#include "train/objectives/parallel_eagle.h"
#include "train/training_run.h"

namespace outrider::train {
namespace {

namespace fs = std::filesystem;
using test::OneBatch;

class Learning : public ::testing::Test {
 protected:
  Learning() {
    test::TinyShape shape;
    shape.vocabulary_size = 40;
    shape.context_length = 64;
    shape.n_layers = 2;
    shape.dim = 16;
    shape.n_heads = 2;
    shape.n_kv_heads = 2;
    shape.head_dim = 8;
    shape.hidden_dim = 32;
    shape.logit_spread = 4;
    test::write_hugging_face(test::make_tiny_model(shape), target_path());
    run_.target = std::make_shared<Teacher>(target_path(), 1);
    run_.batches = std::make_shared<OneBatch>(written(1)->batch(0));
    run_.held_out = run_.batches;
    run_.n_held_out_batches = 1;
    run_.products = Products::full;
    run_.export_type = ElementType::f32;
  }

  fs::path target_path() const { return directory_.path() / "target"; }

  std::shared_ptr<Objective> block_head(BlockHeadKind kind,
                                        BlockHeadOptions::Weights weights) const {
    return make_block_head({.run = run_,
                            .kind = kind,
                            .n_layers = 1,
                            .n_slots = 4,
                            .n_anchors = 8,
                            .mask = 1,
                            .weights = weights,
                            .gamma = 4,
                            .markov_rank = 8});
  }

  static constexpr TokenId kMask = 39;
  std::shared_ptr<Objective> parallel_eagle(TokenId mask = 1) const {
    return make_parallel_eagle(
        {.run = run_, .n_layers = 2, .rows = {.n_drafted = 4}, .mask = mask});
  }

  std::shared_ptr<GeneratedSource> written(double temperature, std::uint64_t seed = 3) const {
    std::vector<TokenId> stream;
    for (int i = 0; i < 400; ++i) stream.push_back(2 + static_cast<TokenId>(mix(7, i) % 38));
    return std::make_shared<GeneratedSource>(
        std::make_shared<WindowSource>(stream, BatchShape{.n_sequences = 2, .length = 24}),
        run_.target, GenerationOptions{.n_prefix = 4, .temperature = temperature, .seed = seed});
  }

  static RunOptions run_options(const fs::path& directory, int n_steps) {
    RunOptions options;
    options.directory = directory;
    options.schedule = {.peak = 1e-2, .final_share = 0.1, .n_warmup = 5, .n_steps = n_steps};
    options.optimizer = {.weight_decay = 0, .clip_norm = 0, .clip_value = 0.5};
    options.seed = 5;
    options.checkpoint_interval = 7;
    return options;
  }

  test::TemporaryDirectory directory_;
  HeadRun run_;
};

double figure(Objective& objective, const std::string& name) {
  for (const auto& [known, value] : objective.evaluate()) {
    if (known == name) return value;
  }
  ADD_FAILURE() << name;
  return 0;
}

// Forty places can be memorised. The result must show where the head is used: on the target's
// features at the first step, on its own predictions later.
TEST_F(Learning, HeadsLearnAFewPlacesByHeart) {
  struct Case {
    std::string name;
    std::shared_ptr<Objective> objective;
    std::vector<std::string> figures;
  };
  const Case cases[] = {
      {"eagle", make_eagle({.run = run_, .noise = 0.01}), {"agreement_0", "overlap_0"}},
      {"eagle3",
       make_eagle3({.run = run_, .n_steps = 3}),
       {"agreement_0", "overlap_0", "agreement_2", "overlap_2"}},
      {"parallel eagle",
       parallel_eagle(),
       {"agreement_1", "overlap_1", "agreement_4", "accepted_0"}},
      {"dflash",
       block_head(BlockHeadKind::dflash, BlockHeadOptions::Weights::decay),
       {"agreement_1", "agreement_3", "accepted_0"}},
      {"dflash, D-PACE",
       block_head(BlockHeadKind::dflash, BlockHeadOptions::Weights::d_pace),
       {"agreement_1", "accepted_0"}},
      {"dspark",
       block_head(BlockHeadKind::dspark, BlockHeadOptions::Weights::decay),
       {"agreement_1", "overlap_1", "agreement_4", "accepted_0", "accepted_1"}},
      {"medusa", make_medusa({.run = run_, .n_heads = 2}), {"agreement_1"}},
      {"mtp",
       make_mtp({.run = run_, .target_directory = target_path(), .n_modules = 2}),
       {"agreement_1", "agreement_2"}}};
  for (const Case& c : cases) {
    std::vector<double> before;
    for (const std::string& name : c.figures) before.push_back(figure(*c.objective, name));
    run_training(*c.objective, run_options(directory_.path() / c.name, 200), {});
    for (std::size_t i = 0; i < c.figures.size(); ++i) {
      const double after = figure(*c.objective, c.figures[i]);
      EXPECT_GT(after, before[i] + 0.25) << c.name << " " << c.figures[i];
      EXPECT_GT(after, 0.5) << c.name << " " << c.figures[i];
    }
  }
}

// A head that has memorised its target's greedy text drafts that text in the engine: its rows there
// are those on which it was trained.
TEST_F(Learning, AParallelHeadDraftsInTheEngineWhatItHasLearned) {
  const auto target = load_model(target_path(), {.n_threads = 1});
  const auto exact = make_verification("exact", "exact").acceptance;
  const auto write = [&](Objective& objective, const char* name) {
    objective.export_to(directory_.path() / name);
    const auto drafter = read_drafter("eagle:" + (directory_.path() / name).string())
                             .make({.target = target.get(),
                                    .target_path = target_path(),
                                    .vocabulary_size = target->config().vocabulary_size,
                                    .load = {.n_threads = 1}});
    return test::write_text(*target, *drafter, *exact, chain_shape(4), {.temperature = 0},
                            {3, 17, 8, 25}, 1);
  };
  const test::WrittenText text = write(*parallel_eagle(kMask), "untrained");
  ASSERT_EQ(std::count(text.tokens.begin(), text.tokens.end(), kMask), 0);

  Batch batch{.n_sequences = 1,
              .length = static_cast<int>(text.tokens.size()),
              .tokens = text.tokens,
              .weights = std::vector<float>(text.tokens.size(), 1)};
  batch.weights.front() = 0;
  run_.batches = std::make_shared<OneBatch>(batch);
  run_.held_out = run_.batches;
  const auto objective = parallel_eagle(kMask);
  run_training(*objective, run_options(directory_.path() / "run", 200), {});
  ASSERT_GT(figure(*objective, "accepted_0"), 3.9);

  const test::WrittenText again = write(*objective, "trained");
  EXPECT_EQ(again.tokens, text.tokens);
  // Forty tokens, five per pass; the prompt's own pass gives the first.
  EXPECT_LE(again.target_passes, 10);
  EXPECT_GT(text.target_passes, 20);
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// With everything that could depend on a run's history: noise, drawn blocks, generated text, bf16.
TEST_F(Learning, AStoppedRunGoesOnBitForBit) {
  run_.batches = written(1);
  run_.products = Products::bf16;
  const auto expect_same = [&](const std::string& name, const auto& objective) {
    const fs::path root = directory_.path() / name;
    run_training(*objective(), run_options(root / "whole", 12), {});
    const std::string whole = bytes_of(root / "whole" / "model.safetensors");
    ASSERT_FALSE(whole.empty());
    for (const int stop : {0, 3, 7, 11}) {
      RunOptions options = run_options(root / std::to_string(stop), 12);
      int n_asked = 0;
      run_training(*objective(), options,
                   {.on_step = {}, .should_stop = [&] { return n_asked++ == stop; }});
      options.resume = true;
      EXPECT_TRUE(run_training(*objective(), options, {}).finished);
      EXPECT_EQ(bytes_of(options.directory / "model.safetensors"), whole)
          << name << " stopped at " << stop;
    }
  };
  expect_same("eagle", [&] { return make_eagle({.run = run_}); });
  expect_same("parallel eagle", [&] { return parallel_eagle(); });
  expect_same("dspark",
              [&] { return block_head(BlockHeadKind::dspark, BlockHeadOptions::Weights::d_pace); });
}

TEST_F(Learning, ARunOfAnotherHeadIsOneClearLine) {
  RunOptions options = run_options(directory_.path() / "run", 3);
  run_training(*make_eagle({.run = run_}), options, {});
  options.resume = true;
  try {
    run_training(*make_medusa({.run = run_}), options, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
}

TEST_F(Learning, GeneratedTextIsTheTargets) {
  const auto greedy = written(0);
  const Batch batch = greedy->batch(2);
  run_.target->run(batch.tokens, batch.n_sequences, true, {});
  int n_written = 0;
  for (int i = 0; i < batch.n_sequences; ++i) {
    bool ended = false;
    for (int place = 0; place < batch.length; ++place) {
      const int at = i * batch.length + place;
      const TokenId token = batch.tokens[static_cast<std::size_t>(at)];
      const float weight = batch.weights[static_cast<std::size_t>(at)];
      if (place < 4 || ended) {
        EXPECT_EQ(weight, 0);
        continue;
      }
      EXPECT_EQ(weight, 1);
      ++n_written;
      const std::span<const float> logits = run_.target->output().logits_row(at - 1);
      EXPECT_EQ(token, std::max_element(logits.begin(), logits.end()) - logits.begin());
      ended = token == 1;  // the tiny models' end of text
    }
  }
  EXPECT_GT(n_written, 4);
}

// A batch depends on its number, not on earlier ones.
TEST_F(Learning, GeneratedTextComesByNumber) {
  const auto one = written(1);
  const auto other = written(1);
  const Batch third = one->batch(3);
  other->batch(0);
  other->batch(7);
  EXPECT_EQ(other->batch(3).tokens, third.tokens);
  EXPECT_EQ(other->batch(3).weights, third.weights);
  EXPECT_NE(one->batch(4).tokens, third.tokens);
  EXPECT_NE(written(1, 4)->batch(3).tokens, third.tokens);
  EXPECT_THROW(GeneratedSource(run_.batches, run_.target, {.n_prefix = 24}), Error);
}

// Sampling follows the target's distribution. The seed is fixed, so this is one draw of chi-square,
// which exceeds its mean by five standard deviations with a probability below 1e-4.
TEST_F(Learning, SampledTextFollowsTheDistribution) {
  constexpr int kDraws = 4000;
  Batch batch{.n_sequences = kDraws, .length = 3, .tokens = {}, .weights = {}};
  for (int i = 0; i < kDraws; ++i) {
    batch.tokens.insert(batch.tokens.end(), {5, 9, 0});
    batch.weights.insert(batch.weights.end(), {0, 0, 0});
  }
  GeneratedSource source(std::make_shared<OneBatch>(batch), run_.target,
                         {.n_prefix = 2, .temperature = 1.5, .seed = 1});
  const Batch drawn = source.batch(0);
  const std::vector<TokenId> prefix = {5, 9};
  run_.target->run(prefix, 1, true, {});
  const std::span<const float> logits = run_.target->output().logits_row(1);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit / 1.5);
  std::vector<int> counts(logits.size());
  for (int i = 0; i < kDraws; ++i) {
    ++counts[static_cast<std::size_t>(drawn.tokens[static_cast<std::size_t>(i) * 3 + 2])];
  }
  double chi_square = 0;
  int n_cells = 0;
  double rest_expected = 0;
  double rest_seen = 0;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const double expected = kDraws * std::exp(logits[token] / 1.5) / sum;
    if (expected < 10) {  // merged: the approximation needs ten per cell
      rest_expected += expected;
      rest_seen += counts[token];
      continue;
    }
    ++n_cells;
    chi_square += (counts[token] - expected) * (counts[token] - expected) / expected;
  }
  if (rest_expected >= 10) {
    ++n_cells;
    chi_square += (rest_seen - rest_expected) * (rest_seen - rest_expected) / rest_expected;
  }
  ASSERT_GT(n_cells, 5);
  EXPECT_LT(chi_square, n_cells + 5 * std::sqrt(2.0 * n_cells));
}

}  // namespace
}  // namespace outrider::train
