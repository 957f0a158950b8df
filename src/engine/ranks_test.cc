// SPDX-License-Identifier: Apache-2.0
// Texts of a model that several ranks hold together: ids and logits, plain and drafted, equal those
// of one process. Here ranks are threads; tests/commands/mpirun_test.cc has processes.
#include "outrider/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "model/ranks/communicator.h"
#include "outrider/error.h"
#include "outrider/generate.h"
#include "tests/support/models/thread_ranks.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A target and a drafter of each kind, written once for all tests.
class Pairs {
 public:
  static fs::path target(const std::string& kind) { return get().directory_.path() / kind; }
  static fs::path draft(const std::string& kind) {
    return get().directory_.path() / (kind + "_draft");
  }

 private:
  static const Pairs& get() {
    static const Pairs pairs;
    return pairs;
  }
  Pairs() {
    test::TinyShape llama;
    llama.n_heads = 9;  // SmolLM2's: three query heads share each key head
    llama.n_kv_heads = 3;
    llama.dim = 96;
    write("llama", llama);
    test::TinyShape qwen2;
    qwen2.seed = 2;
    qwen2.attention_bias = true;
    write("qwen2", qwen2);
    make_qwen2(target_of("qwen2"));
    test::TinyShape experts;
    experts.seed = 3;
    experts.n_experts = 5;
    experts.n_experts_used = 2;
    write("experts", experts);
  }
  fs::path target_of(const std::string& kind) const { return directory_.path() / kind; }
  void write(const std::string& kind, const test::TinyShape& shape) const {
    const test::TinyModel model = test::make_tiny_model(shape);
    test::write_hugging_face(model, target_of(kind));
    test::write_hugging_face(test::with_noise(model, 0.2F, 9),
                             directory_.path() / (kind + "_draft"));
  }
  // The same tensors as a Qwen2, whose query, key and value heads always have biases.
  static void make_qwen2(const fs::path& directory) {
    nlohmann::json config = nlohmann::json::parse(std::ifstream(directory / "config.json"));
    config["architectures"] = {"Qwen2ForCausalLM"};
    config["model_type"] = "qwen2";
    config.erase("attention_bias");
    config.erase("mlp_bias");
    std::ofstream(directory / "config.json") << config.dump();
  }

  test::TemporaryDirectory directory_;
};

// Calls use(model) with a model split over n_ranks ranks.
void on_ranks(const fs::path& path, ModelOptions options, int n_ranks,
              const std::function<void(std::shared_ptr<const Model>)>& use) {
  test::run_ranks(n_ranks, {}, [&](Communicator& communicator) {
    ModelOptions own = options;
    own.ranks = std::make_shared<Ranks>(
        std::shared_ptr<Communicator>(std::shared_ptr<void>(), &communicator));
    if (!own.ranks->leads()) return follow(path, own);
    use(Model::load(path, own));
  });
}

// A text by plain decoding and one by each drafter, greedy and sampled.
std::vector<GenerateResult> texts_of(const std::shared_ptr<const Model>& model,
                                     const std::string& kind) {
  const ModelOptions drafter_options{.threads = 1};
  const std::string model_drafter = "model:" + Pairs::draft(kind).string();
  const std::vector<SpeculationOptions> ways = {
      {},
      {.drafter = model_drafter, .tree = "chain:length=4", .drafter_options = drafter_options},
      {.drafter = model_drafter,
       .tree = "widths:3,2,1",
       .verify = "traversal",
       .drafter_options = drafter_options},
      {.drafter = "suffix", .verify = "coupled", .drafter_options = drafter_options},
  };
  std::vector<GenerateResult> texts;
  for (const SpeculationOptions& way : ways) {
    for (const double temperature : {0.0, 1.0}) {
      Generator generator(model, way);
      texts.push_back(generator.generate("A small test of a small test.",
                                         {.max_tokens = 40,
                                          .sampling = {.temperature = temperature},
                                          .seed = 5,
                                          .ignore_eos = true,
                                          .keep_logits = true}));
    }
  }
  return texts;
}

class RanksDecode : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(RanksDecode, IdsAndLogitsAreThoseOfOneProcess) {
  const auto& [kind, weights] = GetParam();
  const ModelOptions options{.weights = weights, .threads = 1};
  const std::vector<GenerateResult> expected =
      texts_of(Model::load(Pairs::target(kind), options), kind);
  // Greedy drafted decoding equals plain decoding for any number of ranks; and some drafts are
  // accepted.
  EXPECT_EQ(expected[2].ids, expected[0].ids);
  EXPECT_GT(expected[2].statistics.accepted, 0);
  for (const int n_ranks : {2, 3, 4}) {
    std::vector<GenerateResult> texts;
    on_ranks(Pairs::target(kind), options, n_ranks, [&, kind = kind](auto model) {
      texts = texts_of(model, kind);
      EXPECT_EQ(model->failure(), "");
    });
    ASSERT_EQ(texts.size(), expected.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(texts[i].ids, expected[i].ids) << n_ranks << " ranks, text " << i;
      EXPECT_EQ(texts[i].logits, expected[i].logits) << n_ranks << " ranks, text " << i;
      EXPECT_EQ(texts[i].accepted_per_round, expected[i].accepted_per_round);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, RanksDecode,
                         ::testing::Combine(::testing::Values("llama", "qwen2", "experts"),
                                            ::testing::Values("f32", "bf16", "int8", "int4")),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param);
                         });

TEST(Ranks, TheSummaryIsTheModels) {
  const auto whole = Model::load(Pairs::target("experts"), {.threads = 1});
  on_ranks(Pairs::target("experts"), {.threads = 1}, 2, [&](const auto& model) {
    EXPECT_EQ(model->summary().n_parameters, whole->summary().n_parameters);
    EXPECT_EQ(model->summary().n_heads, whole->summary().n_heads);
    EXPECT_LT(model->summary().weight_bytes, whole->summary().weight_bytes);
    // Two of five experts are used: three fifths of this rank's experts are idle, not of all.
    EXPECT_GT(model->summary().idle_bytes, 0);
    EXPECT_LT(model->summary().idle_bytes, whole->summary().idle_bytes);
    EXPECT_LE(model->summary().idle_bytes, model->summary().weight_bytes * 3 / 5);
  });
}

// The exceptions of each rank's body. No rank is told of another's exception here before all had
// time to hear of it from the code under test.
std::vector<std::string> failures_of(int n_ranks,
                                     const std::function<void(const ModelOptions&)>& body) {
  std::vector<std::string> failures(static_cast<std::size_t>(n_ranks));
  test::run_ranks(n_ranks, {}, [&](Communicator& communicator) {
    ModelOptions options{.threads = 1};
    options.ranks = std::make_shared<Ranks>(
        std::shared_ptr<Communicator>(std::shared_ptr<void>(), &communicator));
    try {
      body(options);
    } catch (const std::exception& error) {
      failures[static_cast<std::size_t>(communicator.rank())] = error.what();
      std::this_thread::sleep_for(std::chrono::seconds(1));
      communicator.give_up("it was not told in time");
    }
  });
  return failures;
}

// Errors that one rank finds before it has met the others: only rank 0 reads the tokenizer, and
// options are checked before any file.
TEST(Ranks, WhatIsRefusedBeforeLoadingIsHeard) {
  const test::TemporaryDirectory directory;
  const fs::path path = directory.path() / "model";
  test::write_hugging_face(test::make_tiny_model({}), path);
  std::ofstream(path / "tokenizer.json") << "{";
  const std::vector<std::string> failures = failures_of(2, [&](const ModelOptions& options) {
    options.ranks->leads() ? (void)Model::load(path, options) : follow(path, options);
  });
  EXPECT_THAT(failures[0], HasSubstr("tokenizer"));
  EXPECT_THAT(failures[1], HasSubstr("rank 0 of 2: gave up: "));
  EXPECT_THAT(failures[1], HasSubstr("tokenizer"));
  const std::vector<std::string> others = failures_of(2, [](ModelOptions options) {
    const fs::path model = Pairs::target("llama");
    if (options.ranks->leads()) return (void)Model::load(model, options);
    options.weights = "int3";
    follow(model, options);
  });
  EXPECT_THAT(others[0], HasSubstr("rank 1 of 2: gave up: "));
  EXPECT_THAT(others[0], HasSubstr("int3"));
}

// A signal while a rank waits for another one to load: the wait ends before its limit of an hour.
TEST(Ranks, WhoIsStoppedDoesNotWaitForOthersToLoad) {
  const std::atomic<bool> stop{true};
  std::promise<void> has_ended;
  const std::vector<std::string> failures = failures_of(2, [&](const ModelOptions& options) {
    if (options.ranks->leads()) {
      options.ranks->stop_waiting_when(&stop);
    } else {
      has_ended.get_future().wait_for(std::chrono::seconds(30));
    }
    try {
      options.ranks->leads() ? (void)Model::load(Pairs::target("llama"), options)
                             : follow(Pairs::target("llama"), options);
    } catch (...) {
      if (options.ranks->leads()) has_ended.set_value();
      throw;
    }
  });
  for (const std::string& failure : failures) {
    EXPECT_THAT(failure,
                HasSubstr("rank 0 of 2: gave up: interrupted while it waited for rank 1 to "
                          "load the model"));
  }
}

TEST(Ranks, FollowIsNotForTheFirstOne) {
  EXPECT_THROW(follow(Pairs::target("llama"), {}), UsageError);
}

// A launcher's environment, for this object's lifetime.
class Environment {
 public:
  Environment(std::initializer_list<std::pair<const char*, const char*>> values)
      : values_(values.begin(), values.end()) {
    for (const auto& [name, value] : values_) ::setenv(name, value, 1);
  }
  ~Environment() {
    for (const auto& [name, value] : values_) ::unsetenv(name);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<const char*, const char*>> values_;
};

TEST(DetectLaunch, KnowsTheLaunchers) {
  if (!detect_launch().launcher.empty()) GTEST_SKIP() << "started by a launcher itself";
  EXPECT_TRUE(detect_launch().is_alone());
  {
    const Environment environment{{"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_RANK", "2"}};
    const Launch launch = detect_launch();
    EXPECT_EQ(launch.launcher, "Open MPI");
    EXPECT_EQ(launch.rank, 2);
    EXPECT_EQ(launch.n_ranks, 3);
  }
  {
    const Environment environment{{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}};
    EXPECT_EQ(detect_launch().rank, 1);
    EXPECT_EQ(detect_launch().n_ranks, 2);
  }
  {
    // srun --mpi=pmix
    const Environment environment{{"PMIX_RANK", "1"}, {"SLURM_NTASKS", "4"}};
    EXPECT_EQ(detect_launch().rank, 1);
    EXPECT_EQ(detect_launch().n_ranks, 4);
  }
  {
    const Environment environment{{"PMIX_RANK", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}};
    EXPECT_EQ(detect_launch().rank, 1);
    EXPECT_EQ(detect_launch().n_ranks, 2);
  }
}

// What such processes inherit, or incomplete variables.
TEST(DetectLaunch, KnowsWhatIsNone) {
  if (!detect_launch().launcher.empty()) GTEST_SKIP() << "started by a launcher itself";
  for (const char* rank : {"0", "1"}) {
    const Environment environment{{"PMIX_RANK", rank}};
    EXPECT_TRUE(detect_launch().is_alone()) << "of how many is not known";
    EXPECT_EQ(detect_launch().rank, 0);
  }
  {
    const Environment environment{
        {"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "4"}};
    EXPECT_TRUE(detect_launch().is_alone());
  }
  {
    // srun --mpi=none: tasks that do not know each other.
    const Environment environment{{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "3"}};
    EXPECT_TRUE(detect_launch().is_alone());
    EXPECT_EQ(detect_launch().rank, 0);
  }
  {
    const Environment environment{{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}};
    EXPECT_TRUE(detect_launch().is_alone());
  }
  {
    const Environment environment{
        {"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_RANK", "2"}, {"OUTRIDER_RANKS", "off"}};
    EXPECT_TRUE(detect_launch().is_alone());
    EXPECT_EQ(detect_launch().rank, 0);
  }
  {
    // The process of a batch script itself.
    const Environment environment{{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}};
    EXPECT_TRUE(detect_launch().is_alone());
  }
  {
    const Environment environment{{"OMPI_COMM_WORLD_SIZE", "two"}};
    EXPECT_TRUE(detect_launch().is_alone());
  }
}

}  // namespace
}  // namespace outrider
