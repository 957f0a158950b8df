// SPDX-License-Identifier: Apache-2.0
// Downloads of rounds whose target runs on a device: greedy rounds download the likeliest token of
// each row, others the rows that their rule reads. Texts equal those of the processor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "device/host/host_device.h"
#include "kernels/tables.h"
#include "model/load_model.h"
#include "sampling/counter_chance.h"
#include "sampling/logit_blocks.h"
#include "speculate/decoder.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/watched_device.h"

namespace outrider {
namespace {

using test::WatchedDevice;

constexpr int kVocabulary = 300;
constexpr std::size_t kBestBytes = 8;  // for a row: a token and its logit
constexpr std::size_t kRowBytes = kVocabulary * sizeof(float);

std::filesystem::path files_of(const std::string& name) {
  static const test::TemporaryDirectory kDirectory;
  const std::filesystem::path path = std::filesystem::path(kDirectory.path()) / name;
  if (std::filesystem::exists(path)) return path;
  test::TinyShape shape;
  shape.seed = 3;
  const test::TinyModel target = test::make_tiny_model(shape);
  test::write_hugging_face(name == "target" ? target : test::with_noise(target, 0.3F, 4), path);
  return path;
}

std::unique_ptr<LanguageModel> load(const std::string& name,
                                    std::shared_ptr<device::Device> device) {
  LoadOptions options;
  options.table = &kernels::kScalarTable;
  options.weights = WeightKind::int8;
  options.n_threads = 1;
  options.device = std::move(device);
  options.device_name = "--device test";
  return load_model(files_of(name), options);
}

struct Rounds {
  std::vector<TokenId> tokens;
  std::vector<int> n_rows;                // of the target, by round
  std::vector<std::size_t> n_downloaded;  // bytes, by round; none on the processor
  std::int64_t n_accepted = 0;
};

// A text of a target on the device, or on the processor if that is null.
Rounds run(const std::shared_ptr<WatchedDevice>& device, bool drafts,
           const SamplingParams& sampling) {
  const auto target = load("target", device);
  std::unique_ptr<ModelDrafter> drafter;
  if (drafts) drafter = std::make_unique<ModelDrafter>(load("drafter", nullptr), kVocabulary);
  const auto exact = make_multi_round(std::make_shared<ExactRule>());
  Decoder decoder(*target, drafter.get(), *exact, drafts ? chain_shape(4) : nullptr, nullptr);
  CounterChance chance(7);
  const std::vector<TokenId> prompt = {5, 250, 17, 92, 3};
  Stream stream(0, prompt, Transform(sampling, kVocabulary), chance);
  stream.max_total = 45;
  decoder.begin(stream);
  if (device != nullptr) device->take_downloaded();
  Rounds rounds;
  Stream* const streams[] = {&stream};
  while (!stream.finished) {
    decoder.round(streams, [](Stream&, const Committed&) { return false; });
    rounds.n_rows.push_back(stream.tree.n_nodes());
    if (device != nullptr) rounds.n_downloaded.push_back(device->take_downloaded());
  }
  decoder.end(stream);
  rounds.tokens = stream.tokens;
  rounds.n_accepted = stream.counts.accepted;
  return rounds;
}

std::shared_ptr<WatchedDevice> host() {
  return std::make_shared<WatchedDevice>(std::make_shared<device::HostDevice>());
}

TEST(DeviceRounds, GreedyOnesBringBackAFewBytesARow) {
  for (const bool drafts : {false, true}) {
    const Rounds here = run(nullptr, drafts, {.temperature = 0});
    const Rounds there = run(host(), drafts, {.temperature = 0});
    EXPECT_EQ(there.tokens, here.tokens);
    EXPECT_EQ(there.n_rows, here.n_rows);
    EXPECT_EQ(there.n_accepted > 0, drafts);
    for (std::size_t round = 0; round < there.n_rows.size(); ++round) {
      EXPECT_EQ(there.n_downloaded[round],
                static_cast<std::size_t>(there.n_rows[round]) * kBestBytes);
    }
  }
}

// Rows that a rule or a penalty reads are downloaded, each once.
TEST(DeviceRounds, OthersBringBackTheRowsThatTheyRead) {
  const SamplingParams all[] = {{.temperature = 0.9},
                                {.temperature = 0, .repetition_penalty = 1.5}};
  for (const SamplingParams& sampling : all) {
    for (const bool drafts : {false, true}) {
      const Rounds here = run(nullptr, drafts, sampling);
      const Rounds there = run(host(), drafts, sampling);
      EXPECT_EQ(there.tokens, here.tokens);
      for (std::size_t round = 0; round < there.n_rows.size(); ++round) {
        const auto n_rows = static_cast<std::size_t>(there.n_rows[round]);
        EXPECT_GE(there.n_downloaded[round], n_rows * kBestBytes + kRowBytes);
        EXPECT_LE(there.n_downloaded[round], n_rows * (kBestBytes + kRowBytes));
      }
    }
  }
}

class LogitsOnDevice : public ::testing::Test {
 protected:
  // A pass over n tokens from `start` on.
  void forward(int start, int n, ForwardOutput& output, std::span<const int> skipped = {}) {
    std::vector<TokenId> tokens(static_cast<std::size_t>(n));
    std::iota(tokens.begin(), tokens.end(), start);
    const auto sequence = model_->open({});
    const TokenBlock block{sequence.get(), tokens, {}};
    model_->forward({&block, 1}, {.skip_layers = skipped}, output);
  }
  static std::vector<float> all_of(const ForwardOutput& output) {
    const std::span<const float> values = output.logits.values();
    return {values.begin(), values.end()};
  }

  std::shared_ptr<WatchedDevice> device_ = host();
  std::unique_ptr<LanguageModel> model_ = load("target", device_);
};

TEST_F(LogitsOnDevice, KnowTheLikeliestTokenAsTheRowsHaveIt) {
  ForwardOutput output;
  forward(10, 9, output);
  for (int row = 0; row < 9; ++row) {
    const TokenId known = output.logits.row(row).known_likeliest();
    const float logit = output.logits.row(row).at(known);
    LogitBlocks blocks;
    blocks.scan(output.logits_row(row));
    EXPECT_EQ(known, blocks.likeliest());
    EXPECT_EQ(
        std::memcmp(&logit, &output.logits_row(row)[static_cast<std::size_t>(known)], sizeof logit),
        0);
    // If the vocabulary does not include the likeliest token, it is unknown.
    EXPECT_EQ(output.logits.row(row).first(static_cast<std::size_t>(known)).known_likeliest(),
              kNoToken);
  }
}

// Rows of an output are valid until the next pass into that output, whatever runs meanwhile.
TEST_F(LogitsOnDevice, OutlivePassesIntoOtherOutputs) {
  ForwardOutput expected;
  forward(10, 6, expected);
  const std::vector<float> rows = all_of(expected);
  const std::vector<int> skipped = {1};
  for (const bool skips : {false, true}) {
    for (const int n : {1, 6, 40}) {  // fewer rows, as many and more than the buffer holds
      ForwardOutput first;
      ForwardOutput second;
      forward(10, 6, first);
      forward(100, n, second, skips ? std::span<const int>(skipped) : std::span<const int>());
      EXPECT_EQ(all_of(first), rows) << n;
      EXPECT_NE(all_of(second), rows) << n;
    }
  }
}

TEST_F(LogitsOnDevice, OutliveTheModel) {
  ForwardOutput output;
  forward(10, 6, output);
  ForwardOutput again;
  forward(10, 6, again);
  const std::vector<float> rows = all_of(output);
  model_ = nullptr;
  EXPECT_EQ(all_of(again), rows);
}

TEST_F(LogitsOnDevice, ForbidATokenInAllRows) {
  ForwardOutput output;
  forward(10, 3, output);
  const TokenId likeliest = output.logits.row(1).known_likeliest();
  output.logits.forbid(likeliest);
  EXPECT_EQ(output.logits.row(1).at(likeliest), -std::numeric_limits<float>::infinity());
  EXPECT_NE(likeliest_token(output.logits.row(1)), likeliest);
}

}  // namespace
}  // namespace outrider
