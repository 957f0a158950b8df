// SPDX-License-Identifier: Apache-2.0
// The training loop: what a stopped run leaves, and how it is resumed.
#include "train/training_run.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <string>

#include "outrider/error.h"
#include "tests/support/temporary_directory.h"
#include "train/objective.h"
#include "train/objectives/lm.h"

namespace outrider::train {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ModelConfig tiny_config() {
  ModelConfig config;
  config.architecture = "llama";
  config.vocabulary_size = 50;
  config.context_length = 64;
  config.n_layers = 2;
  config.dim = 32;
  config.n_heads = 2;
  config.n_kv_heads = 2;
  config.head_dim = 16;
  config.hidden_dim = 64;
  config.tied_head = true;
  return config;
}

// A text with a pattern: most tokens are followed by the one after next.
std::shared_ptr<BatchSource> batches() {
  std::vector<TokenId> stream;
  std::uint64_t state = 1;
  for (int i = 0; i < 3000; ++i) {
    state = mix(state, static_cast<std::uint64_t>(i));
    const TokenId last = stream.empty() ? 0 : stream.back();
    stream.push_back(state % 10 == 0 ? static_cast<TokenId>(state / 16 % 50) : (last + 2) % 50);
  }
  return std::make_shared<WindowSource>(stream,
                                        BatchShape{.n_sequences = 4, .length = 16, .seed = 9});
}

std::shared_ptr<Objective> make_tiny(Products products = Products::bf16) {
  LmOptions options;
  options.config = tiny_config();
  options.products = products;
  options.seed = 11;
  options.batches = batches();
  options.held_out = batches();
  options.export_type = ElementType::f32;
  return make_lm(options);
}

RunOptions run_options(const fs::path& directory, int n_steps = 24) {
  RunOptions options;
  options.directory = directory;
  options.settings = {{"data", "pattern"}};
  options.schedule = {.peak = 1e-2, .final_share = 0.1, .n_warmup = 3, .n_steps = n_steps};
  options.seed = 5;
  options.accumulation = 2;
  options.checkpoint_interval = 7;
  return options;
}

TEST(TrainingRun, LearnsThePattern) {
  const test::TemporaryDirectory directory;
  std::vector<StepReport> reports;
  const auto objective = make_tiny();
  const RunOutcome outcome =
      run_training(*objective, run_options(directory.path(), 120),
                   {.on_step = [&](const StepReport& report) { reports.push_back(report); }});
  EXPECT_TRUE(outcome.finished);
  ASSERT_EQ(reports.size(), 120u);
  EXPECT_NEAR(reports.front().loss, std::log(50), 0.1);
  // Nine of ten tokens are certain: an entropy of 0.1 ln 500 + 0.9 ln (1 / 0.902) = 0.71 nats.
  EXPECT_LT(reports.back().loss, 1.0);
  ASSERT_EQ(reports.back().held_out.size(), 1u);
  EXPECT_LT(reports.back().held_out[0].second, 1.0);
  EXPECT_TRUE(fs::exists(directory.path() / "model.safetensors"));
  EXPECT_TRUE(fs::exists(directory.path() / "config.json"));
}

TEST(TrainingRun, StoppedAnywhereItGoesOnBitForBit) {
  const test::TemporaryDirectory directory;
  run_training(*make_tiny(), run_options(directory.path() / "whole"), {});
  const std::string whole = bytes_of(directory.path() / "whole" / "model.safetensors");
  ASSERT_FALSE(whole.empty());
  for (const int stop : {0, 1, 6, 7, 8, 20, 23}) {
    const fs::path out = directory.path() / std::to_string(stop);
    RunOptions options = run_options(out);
    int n_asked = 0;
    const RunOutcome stopped = run_training(
        *make_tiny(), options, {.on_step = {}, .should_stop = [&] { return n_asked++ == stop; }});
    EXPECT_FALSE(stopped.finished);
    EXPECT_EQ(stopped.n_steps_done, stop);
    EXPECT_FALSE(fs::exists(out / "model.safetensors"));
    options.resume = true;
    const RunOutcome resumed = run_training(*make_tiny(), options, {});
    EXPECT_EQ(resumed.first_step, stop);
    EXPECT_TRUE(resumed.finished);
    EXPECT_EQ(bytes_of(out / "model.safetensors"), whole) << "stopped after " << stop;
  }
}

TEST(TrainingRun, SeedsMatter) {
  const test::TemporaryDirectory directory;
  LmOptions options;
  options.config = tiny_config();
  options.batches = batches();
  for (const int seed : {1, 2}) {
    options.seed = static_cast<std::uint64_t>(seed);
    run_training(*make_lm(options), run_options(directory.path() / std::to_string(seed), 3), {});
  }
  EXPECT_NE(bytes_of(directory.path() / "1" / "model.safetensors"),
            bytes_of(directory.path() / "2" / "model.safetensors"));
}

TEST(TrainingRun, DoesNotMixRuns) {
  const test::TemporaryDirectory directory;
  RunOptions options = run_options(directory.path(), 3);
  run_training(*make_tiny(), options, {});
  EXPECT_THROW(run_training(*make_tiny(), options, {}), Error);  // a run exists already
  options.resume = true;
  options.settings[0].second = "another text";
  try {
    run_training(*make_tiny(), options, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("data"), std::string::npos) << error.what();
  }
}

// A flag that was given when the run began is missing now: `train eagle --parallel`, for example.
TEST(TrainingRun, DoesNotGoOnWithFewerFlags) {
  const test::TemporaryDirectory directory;
  RunOptions options = run_options(directory.path(), 3);
  options.settings.emplace_back("parallel", "yes");
  run_training(*make_tiny(), options, {});
  options.resume = true;
  EXPECT_EQ(run_training(*make_tiny(), options, {}).first_step, 3);
  options.settings.pop_back();
  try {
    run_training(*make_tiny(), options, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("parallel: expected \"yes\""), std::string::npos)
        << error.what();
  }
}

// A loss that fails at one step.
class Breaking final : public Objective {
 public:
  explicit Breaking(std::int64_t at) : at_(at), sound_(make_tiny()) {}
  torch::nn::Module& trained() override { return sound_->trained(); }
  Loss loss(std::int64_t number) override {
    Loss loss = sound_->loss(number);
    if (number == at_) loss.value = loss.value * std::numeric_limits<double>::quiet_NaN();
    return loss;
  }
  void export_to(const fs::path& directory) override { sound_->export_to(directory); }

 private:
  std::int64_t at_;
  std::shared_ptr<Objective> sound_;
};

TEST(TrainingRun, ALossThatIsNoNumberLeavesTheLastGoodCheckpoint) {
  const test::TemporaryDirectory directory;
  RunOptions options = run_options(directory.path());
  Breaking breaking(2 * 16);  // the seventeenth step; the last checkpoint is after fourteen
  try {
    run_training(breaking, options, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("loss at step 17"), std::string::npos) << error.what();
  }
  options.resume = true;
  EXPECT_EQ(run_training(*make_tiny(), options, {}).first_step, 14);
}

// Ten steps of a valid run, then one that ruins the weights.
TEST(TrainingRun, AStepThatRuinsTheWeightsLeavesTheLastGoodCheckpoint) {
  const test::TemporaryDirectory directory;
  RunOptions options = run_options(directory.path());
  int n_asked = 0;
  run_training(*make_tiny(), options,
               {.on_step = {}, .should_stop = [&] { return n_asked++ == 10; }});
  const fs::path checkpoint = directory.path() / "training" / "checkpoint.pt";
  const std::string good = bytes_of(checkpoint);
  RunOptions wild = options;
  wild.resume = true;
  wild.schedule.peak = 1e30;  // the weights stay finite, but their squares overflow
  wild.checkpoint_interval = 1;
  wild.export_interval = 1;
  EXPECT_THROW(run_training(*make_tiny(), wild, {}), Error);
  EXPECT_EQ(bytes_of(checkpoint), good);
  EXPECT_FALSE(fs::exists(directory.path() / "model.safetensors"));
  // Also in the last step, and in the one at which a run is stopped.
  wild.schedule.n_steps = 11;
  EXPECT_THROW(run_training(*make_tiny(), wild, {}), Error);
  wild.schedule.n_steps = 24;
  wild.checkpoint_interval = wild.export_interval = 100;
  n_asked = 0;
  EXPECT_THROW(run_training(*make_tiny(), wild,
                            {.on_step = {}, .should_stop = [&] { return n_asked++ == 1; }}),
               Error);
  EXPECT_EQ(bytes_of(checkpoint), good);
  EXPECT_FALSE(fs::exists(directory.path() / "model.safetensors"));
  options.resume = true;
  EXPECT_EQ(run_training(*make_tiny(), options, {}).first_step, 10);
}

TEST(TrainingRun, ALowerRateIsTakenUpAndSaid) {
  const test::TemporaryDirectory directory;
  RunOptions options = run_options(directory.path());
  options.settings.emplace_back(kLearningRate, "0.01");
  int n_asked = 0;
  run_training(*make_tiny(), options,
               {.on_step = {}, .should_stop = [&] { return n_asked++ == 3; }});
  options.resume = true;
  options.settings.back().second = "0.001";
  std::string said;
  const RunHooks hooks{.on_step = {},
                       .should_stop = {},
                       .on_new_rate = [&](const std::string& before, const std::string& now) {
                         said += before + " to " + now;
                       }};
  EXPECT_TRUE(run_training(*make_tiny(), options, hooks).finished);
  EXPECT_EQ(said, "0.01 to 0.001");
  run_training(*make_tiny(), options, hooks);  // it is now the run's own rate
  EXPECT_EQ(said, "0.01 to 0.001");
  options.settings.back().second = "0.5";
  run_training(*make_tiny(), options, hooks);  // no step is left to take at it
  EXPECT_EQ(said, "0.01 to 0.001");
  EXPECT_NE(bytes_of(directory.path() / "training" / "settings.json").find("\"0.001\""),
            std::string::npos);
}

// Valid, except for its figures on held-out text.
class Boasting final : public Objective {
 public:
  torch::nn::Module& trained() override { return sound_->trained(); }
  Loss loss(std::int64_t number) override { return sound_->loss(number); }
  std::vector<Metric> evaluate() override {
    return {{"loss", std::numeric_limits<double>::quiet_NaN()}};
  }
  void export_to(const fs::path& directory) override { sound_->export_to(directory); }

 private:
  std::shared_ptr<Objective> sound_ = make_tiny();
};

TEST(TrainingRun, AHeldOutFigureThatIsNoNumberEndsTheRun) {
  const test::TemporaryDirectory directory;
  RunOptions options = run_options(directory.path());
  options.evaluation_interval = 9;
  Boasting boasting;
  try {
    run_training(boasting, options, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("held-out loss at step 9"), std::string::npos)
        << error.what();
  }
  options.resume = true;
  EXPECT_EQ(run_training(*make_tiny(), options, {}).first_step, 7);
}

// A file-size limit simulates a full disk: the log and the settings fit, a checkpoint does not.
TEST(TrainingRun, AFullDiskLosesNothing) {
  const test::TemporaryDirectory directory;
  RunOptions options = run_options(directory.path());
  int n_asked = 0;
  run_training(*make_tiny(), options,
               {.on_step = {}, .should_stop = [&] { return n_asked++ == 9; }});
  const std::string checkpoint = bytes_of(directory.path() / "training" / "checkpoint.pt");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = 20'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  options.resume = true;
  EXPECT_THROW(run_training(*make_tiny(), options, {}), Error);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(bytes_of(directory.path() / "training" / "checkpoint.pt"), checkpoint);
  EXPECT_TRUE(run_training(*make_tiny(), options, {}).finished);
}

TEST(TrainingRun, ADamagedCheckpointIsOneClearError) {
  const test::TemporaryDirectory directory;
  RunOptions options = run_options(directory.path(), 3);
  run_training(*make_tiny(), options, {});
  const fs::path checkpoint = directory.path() / "training" / "checkpoint.pt";
  const std::string good = bytes_of(checkpoint);
  options.resume = true;
  for (const std::string& bad :
       {good.substr(0, good.size() / 2), std::string("nothing"), std::string()}) {
    std::ofstream(checkpoint, std::ios::binary) << bad;
    try {
      run_training(*make_tiny(), options, {});
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace outrider::train
