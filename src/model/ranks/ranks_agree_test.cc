// SPDX-License-Identifier: Apache-2.0
// What ranks must have in common, how many of them a model allows, and that a failure of one
// reaches the others through the code under test alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "io/memory_tensors.h"
#include "model/load_model.h"
#include "model/ranks/agree.h"
#include "model/ranks/in_process_ranks.h"
#include "model/ranks/leading_model.h"
#include "model/ranks/rank_commands.h"
#include "outrider/error.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/memory_files.h"
#include "tests/support/models/run_model.h"
#include "tests/support/models/thread_ranks.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using test::run_ranks;
using test::ThreadRanks;
using ::testing::Each;
using ::testing::HasSubstr;

// The error of each rank's body; empty if none.
std::vector<std::string> failures_of(
    int n_ranks, const ThreadRanks& form,
    const std::function<void(Communicator&, const LoadOptions&)>& body) {
  std::vector<std::string> failures(static_cast<std::size_t>(n_ranks));
  run_ranks(n_ranks, form, [&](Communicator& ranks) {
    LoadOptions options;
    options.n_threads = 1;
    options.ranks = std::shared_ptr<Communicator>(std::shared_ptr<void>(), &ranks);
    try {
      body(ranks, options);
    } catch (const std::exception& error) {
      failures[static_cast<std::size_t>(ranks.rank())] = error.what();
    }
  });
  return failures;
}

void load_and_run(const fs::path& path, const LoadOptions& options) {
  if (options.ranks->rank() > 0) return follow_model(path, options);
  const auto model = load_model(path, options);
  const auto sequence = model->open({});
  const std::vector<TokenId> tokens = {1, 2, 3};
  test::run_and_keep(*model, *sequence, tokens);
}

class RanksAgree : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const test::TinyShape& shape) const {
    const fs::path path = directory_.path() / name;
    test::write_hugging_face(test::make_tiny_model(shape), path);
    return path;
  }

  test::TemporaryDirectory directory_;
};

// The same names, types and shapes, but other numbers.
TEST_F(RanksAgree, AnotherFineTuneIsRefused) {
  test::TinyShape other;
  other.seed = 2;
  const fs::path first = write("first", {});
  const fs::path second = write("second", other);
  EXPECT_THAT(failures_of(2, {},
                          [&](Communicator& ranks, const LoadOptions& options) {
                            load_and_run(ranks.leads() ? first : second, options);
                          }),
              Each(HasSubstr("model (a checksum of its files): expected ")));
}

// The same tensors with another configuration.
TEST_F(RanksAgree, AnotherConfigurationIsRefused) {
  test::TinyShape other;
  other.rope.theta = 20000;
  const fs::path first = write("first", {});
  const fs::path second = write("second", other);
  EXPECT_THAT(failures_of(2, {},
                          [&](Communicator& ranks, const LoadOptions& options) {
                            load_and_run(ranks.leads() ? first : second, options);
                          }),
              Each(HasSubstr("model (a checksum of its files): expected ")));
}

TEST_F(RanksAgree, OtherCachesAreRefused) {
  const fs::path path = write("model", {});
  EXPECT_THAT(failures_of(2, {},
                          [&](Communicator& ranks, LoadOptions options) {
                            options.kv =
                                ranks.leads() ? kernels::KvKind::int8 : kernels::KvKind::bf16;
                            load_and_run(path, options);
                          }),
              Each(HasSubstr("kv: expected int8 on every rank, as on rank 0, got bf16 on rank 1")));
  EXPECT_THAT(failures_of(3, {},
                          [&](Communicator& ranks, LoadOptions options) {
                            if (ranks.rank() == 2) options.kv_memory_bytes = 1U << 20;
                            load_and_run(path, options);
                          }),
              Each(HasSubstr("kv memory: expected 0 on every rank, as on rank 0, got 1048576 on "
                             "rank 2")));
}

// Otherwise rank 0 might not send within the time for which the other waits.
TEST_F(RanksAgree, OtherTimeoutsAreRefused) {
  const fs::path path = write("model", {});
  std::vector<std::unique_ptr<Transport>> ends = make_in_process_ranks(2);
  std::vector<std::string> failures(2);
  const auto run = [&](std::size_t rank, double timeout_seconds) {
    LoadOptions options;
    options.n_threads = 1;
    options.ranks = std::make_shared<Communicator>(std::move(ends[rank]), timeout_seconds);
    try {
      load_and_run(path, options);
    } catch (const std::exception& error) {
      failures[rank] = error.what();
    }
  };
  std::thread other([&] { run(1, 60); });
  run(0, 600);
  other.join();
  EXPECT_THAT(failures, Each(HasSubstr("rank time-out: expected 600 s on every rank, as on rank 0, "
                                       "got 60 s on rank 1")));
}

// Counts the tensors whose bytes were read: readers release them.
class CountedTensors final : public TensorSource {
 public:
  CountedTensors(std::size_t n, std::span<const std::byte> bytes) : tensors_(n) {
    for (std::size_t i = 0; i < n; ++i) {
      tensors_[i].name = std::to_string(i);
      tensors_[i].shape = {static_cast<std::int64_t>(bytes.size() / sizeof(float))};
      tensors_[i].data = bytes;
    }
  }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const TensorView* find(std::string_view /*name*/) const override { return nullptr; }
  std::string description() const override { return "counted"; }
  void release(const TensorView& /*tensor*/) const override { ++n_read_; }
  std::size_t n_read() const { return n_read_; }

 private:
  std::vector<TensorView> tensors_;
  mutable std::size_t n_read_ = 0;
};

// A file that claims more tensors than any model has does not make every rank read all of them. All
// names still count.
TEST_F(RanksAgree, AFileOfVeryManyTensorsIsReadInPart) {
  const fs::path path = write("model", {});
  const std::vector<std::byte> bytes(4096);
  for (const std::size_t n : {std::size_t{1}, std::size_t{300}, kMaxSamples, 3 * kMaxSamples + 7}) {
    const CountedTensors source(n, bytes);
    const std::string sum = model_checksum(path, source);
    EXPECT_LE(source.n_read(), kMaxSamples) << n;
    EXPECT_GE(source.n_read(), std::min(n, kMaxSamples / 2)) << n;
    EXPECT_EQ(model_checksum(path, CountedTensors(n, bytes)), sum);
    EXPECT_NE(model_checksum(path, CountedTensors(n + 1, bytes)), sum);
    std::vector<std::byte> other(4096, std::byte{1});
    EXPECT_NE(model_checksum(path, CountedTensors(n, other)), sum);
  }
  EXPECT_EQ(model_checksum(path, CountedTensors(0, bytes)),
            model_checksum(path, CountedTensors(0, bytes)));
}

TEST_F(RanksAgree, MoreThanThereAreExpertsAreRefused) {
  test::TinyShape experts;
  experts.n_experts = 2;
  experts.n_experts_used = 2;
  const fs::path path = write("experts", experts);
  EXPECT_THAT(
      failures_of(3, {},
                  [&](Communicator&, const LoadOptions& options) { load_and_run(path, options); }),
      Each(HasSubstr("expected at most 2 ranks, one for each expert, got 3")));
}

TEST_F(RanksAgree, AModelInMemoryIsRefused) {
  EXPECT_THAT(failures_of(2, {},
                          [](Communicator&, const LoadOptions& options) {
                            test::MemoryFiles files(test::golden_directory("llama_plain"));
                            (void)load_model(files.folder(),
                                             std::make_unique<MemoryTensors>(files.views, "memory"),
                                             options);
                          }),
              Each(HasSubstr("one in files, which every rank reads")));
}

// Loading may take a rank longer than it may be silent in a pass.
TEST_F(RanksAgree, WhoLoadsSlowlyIsWaitedFor) {
  const fs::path path = write("model", {});
  EXPECT_THAT(failures_of(2, {.timeout_seconds = 1.5},
                          [&](Communicator& ranks, LoadOptions options) {
                            if (!ranks.leads()) {
                              options.progress = [slept = false](double) mutable {
                                if (!slept) std::this_thread::sleep_for(std::chrono::seconds(3));
                                slept = true;
                              };
                            }
                            load_and_run(path, options);
                          }),
              Each(""));
}

TEST_F(RanksAgree, ALoadErrorReachesEveryRank) {
  const fs::path path = write("model", {});
  const std::vector<std::string> failures =
      failures_of(3, {}, [&](Communicator& ranks, const LoadOptions& options) {
        load_and_run(ranks.rank() == 1 ? "/nowhere/at/all" : path, options);
      });
  EXPECT_THAT(failures[0], HasSubstr("rank 1 of 3: gave up: [load model] /nowhere/at/all"));
  EXPECT_THAT(failures[1], HasSubstr("[load model] /nowhere/at/all"));
  EXPECT_THAT(failures[2], HasSubstr("rank 1 of 3: gave up: [load model] /nowhere/at/all"));
}

TEST_F(RanksAgree, AFollowersErrorReachesTheFirst) {
  const fs::path path = write("model", {});
  const auto failures_behind = [&](const std::function<void(CommandWriter&)>& put) {
    return failures_of(2, {.timeout_seconds = 10},
                       [&](Communicator& ranks, const LoadOptions& options) {
                         if (!ranks.leads()) return follow_model(path, options);
                         const auto part = load_part(path, options);
                         CommandWriter writer;
                         put(writer);
                         writer.send(ranks);
                         ranks.barrier();
                       });
  };
  EXPECT_THAT(failures_behind([](CommandWriter& writer) { writer.put_int(99); })[0],
              HasSubstr("rank 1 of 2: gave up: [run ranks] commands of rank 0: expected known"));
  EXPECT_THAT(failures_behind([](CommandWriter& writer) {
                writer.put(RankCommand::rewind);
                writer.put_number(3);  // no sequence has this number
                writer.put_int(0);
              })[0],
              HasSubstr("rank 1 of 2: gave up: [run ranks] commands of rank 0: expected sequences "
                        "that are open"));
}

TEST_F(RanksAgree, APassWithoutAllRanksLeavesNoRows) {
  const fs::path path = write("model", {});
  failures_of(2, {.timeout_seconds = 10}, [&](Communicator& ranks, const LoadOptions& options) {
    if (!ranks.leads()) return follow_model(path, options);
    const auto model = load_model(path, options);
    const auto sequence = model->open({});
    const std::vector<TokenId> tokens = {1, 2, 3};
    const std::vector<int> layers = {0};
    const TokenBlock block{sequence.get(), tokens, {}};
    ForwardOutput output;
    model->forward({&block, 1}, {.feature_layers = layers}, output);
    EXPECT_EQ(output.logits.n_rows(), 3);
    EXPECT_GT(output.feature_width, 0);
    ranks.give_up("the other one is gone");
    EXPECT_THROW(model->forward({&block, 1}, {.feature_layers = layers}, output), Error);
    EXPECT_EQ(output.logits.n_rows(), 0);
    EXPECT_EQ(output.feature_width, 0);
    const std::vector<float> features(static_cast<std::size_t>(model->config().dim));
    EXPECT_THROW(model->project(features, output), Error);
    EXPECT_EQ(output.logits.n_rows(), 0);
  });
}

}  // namespace
}  // namespace outrider
