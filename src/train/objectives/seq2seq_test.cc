// SPDX-License-Identifier: Apache-2.0
// Learning pairs of texts: memorising them, bit-equal resumption, smoothing, and learning from a
// teacher.
#include "train/objectives/seq2seq.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "tests/support/temporary_directory.h"
#include "train/modules/t5_module.h"
#include "train/objective.h"
#include "train/output/model_directory.h"
#include "train/training_run.h"

namespace outrider::train {
namespace {

namespace fs = std::filesystem;

constexpr int kVocabulary = 40;
constexpr TokenId kEnd = 1;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

T5Config tiny_config() {
  T5Config config;
  config.vocabulary_size = kVocabulary;
  config.dim = 32;
  config.n_heads = 2;
  config.head_dim = 8;
  config.hidden_dim = 48;
  config.n_encoder_layers = 2;
  config.n_decoder_layers = 2;
  return config;
}

// Texts of several lengths, each paired with its reverse: no token follows from those before it
// alone.
std::vector<SentencePair> backwards(int n_pairs) {
  std::vector<SentencePair> pairs;
  std::uint64_t state = 1;
  for (int i = 0; i < n_pairs; ++i) {
    SentencePair& pair = pairs.emplace_back();
    for (int j = 0; j < 3 + i % 4; ++j) {
      state = mix(state, static_cast<std::uint64_t>(j));
      pair.source.push_back(static_cast<TokenId>(2 + state % (kVocabulary - 2)));
    }
    pair.target.assign(pair.source.rbegin(), pair.source.rend());
    pair.target.push_back(kEnd);
  }
  return pairs;
}

Seq2SeqOptions options_of(int n_pairs) {
  Seq2SeqOptions options;
  options.config = tiny_config();
  options.products = Products::full;
  options.seed = 3;
  options.batches = std::make_shared<PairSource>(
      backwards(n_pairs), BatchShape{.n_sequences = 4, .length = 16, .seed = 9}, 0);
  options.held_out = std::make_shared<PairSource>(
      backwards(n_pairs), BatchShape{.n_sequences = 3, .length = 16, .seed = 0}, 0);
  options.export_type = ElementType::f32;
  return options;
}

RunOptions run_options(const fs::path& directory, int n_steps) {
  RunOptions options;
  options.directory = directory;
  options.settings = {{"data", "backwards"}};
  options.schedule = {.peak = 5e-3, .final_share = 0.1, .n_warmup = 10, .n_steps = n_steps};
  options.seed = 5;
  options.checkpoint_interval = 7;
  return options;
}

TEST(Seq2SeqRun, LearnsPairsByHeart) {
  const test::TemporaryDirectory directory;
  const Seq2Seq seq2seq = make_seq2seq(options_of(8));
  std::vector<StepReport> reports;
  run_training(*seq2seq.objective, run_options(directory.path(), 250),
               {.on_step = [&](const StepReport& report) { reports.push_back(report); }});
  ASSERT_EQ(reports.size(), 250u);
  EXPECT_NEAR(reports.front().loss, std::log(kVocabulary), 0.2);
  EXPECT_LT(reports.back().loss, 0.05);
  ASSERT_EQ(reports.back().held_out.size(), 1u);
  EXPECT_LT(reports.back().held_out[0].second, 0.05);
  std::int64_t n_tokens = 0;
  std::vector<std::vector<TokenId>> sources;
  std::vector<std::vector<TokenId>> expected;
  for (const SentencePair& pair : backwards(8)) {
    sources.push_back(pair.source);
    expected.emplace_back(pair.target.begin(), pair.target.end() - 1);
    n_tokens += static_cast<std::int64_t>(pair.target.size());
  }
  EXPECT_EQ(seq2seq.answer(sources, 16), expected);
  EXPECT_EQ(reports[0].n_tokens + reports[1].n_tokens, n_tokens);  // two batches form an epoch
  // The exported model gives the same answers.
  const T5Config read = read_t5_config(directory.path());
  EXPECT_EQ(read.dim, 32);
  T5Module again = make_t5(read, Products::full, directory.path(), 1);
  const torch::Tensor first = torch::tensor(sources[0], torch::kInt64).unsqueeze(0);
  const torch::Tensor length = torch::tensor({first.size(1)}, torch::kInt64);
  EXPECT_EQ(answer_greedily(again, first, length, 16)[0], expected[0]);
  // And not more of it than requested.
  EXPECT_EQ(answer_greedily(again, first, length, 2)[0].size(), 2u);
}

TEST(Seq2SeqRun, StoppedAnywhereItGoesOnBitForBit) {
  const test::TemporaryDirectory directory;
  Seq2SeqOptions options = options_of(10);  // an epoch's last batch is smaller
  options.dropout = 0.2;
  options.label_smoothing = 0.1;
  const auto made = [&] { return make_seq2seq(options).objective; };
  run_training(*made(), run_options(directory.path() / "whole", 16), {});
  const std::string whole = bytes_of(directory.path() / "whole" / "model.safetensors");
  ASSERT_FALSE(whole.empty());
  for (const int stop : {1, 7, 15}) {
    const fs::path out = directory.path() / std::to_string(stop);
    RunOptions run = run_options(out, 16);
    int n_asked = 0;
    const RunOutcome stopped = run_training(
        *made(), run, {.on_step = {}, .should_stop = [&] { return n_asked++ == stop; }});
    EXPECT_EQ(stopped.n_steps_done, stop);
    run.resume = true;
    EXPECT_EQ(run_training(*made(), run, {}).first_step, stop);
    EXPECT_EQ(bytes_of(out / "model.safetensors"), whole) << "stopped after " << stop;
  }
}

TEST(Seq2SeqAnswer, SaysNoRowWithoutAToken) {
  Seq2SeqOptions options = options_of(4);
  constexpr TokenId kSaid = 7;
  for (TokenId id = 0; id < kVocabulary; ++id) {
    if (id != kSaid) options.excluded_tokens.push_back(id);
  }
  const std::vector<std::vector<TokenId>> sources = {{5, 6, 7}, {8}};
  const std::vector<TokenId> answer(6, kSaid);
  EXPECT_EQ(make_seq2seq(options).answer(sources, 6), (std::vector{answer, answer}));
}

TEST(Seq2SeqAnswer, RefusesWhatTakesTooMuchMemory) {
  const Seq2Seq seq2seq = make_seq2seq(options_of(4));
  const std::vector<std::vector<TokenId>> sources = {{5}, std::vector<TokenId>(5793, 5)};
  EXPECT_THROW(seq2seq.answer(sources, 6), Error);  // 2 heads: 5,792
  EXPECT_TRUE(seq2seq.answer({}, 6).empty());
}

// The decoder must not read the token that it predicts: a model that reads the target's token at
// its own place would know it.
TEST(Seq2SeqLoss, KnowsNoTokenBeforeItIsSaid) {
  Seq2SeqOptions options = options_of(4);
  options.batches = std::make_shared<PairSource>(
      std::vector<SentencePair>{{{5, 6, 7}, {8, 9, 10, kEnd}}}, BatchShape{1, 16, 0}, 0);
  const auto objective = make_seq2seq(options).objective;
  const double before = objective->loss(0).value.item<double>();
  // By hand: predicts each token from those before it, one by one.
  T5Module model = make_t5(options.config, options.products, {}, options.seed);
  const torch::NoGradGuard no_grad;
  const Encoded encoded =
      model->encode(torch::tensor({{5, 6, 7}}, torch::kInt64), torch::tensor({3}, torch::kInt64));
  const std::vector<std::int64_t> said = {8, 9, 10, kEnd};
  std::vector<std::int64_t> read = {options.config.start};
  double sum = 0;
  for (const std::int64_t token : said) {
    const torch::Tensor features =
        model->decode(torch::tensor(read, torch::kInt64).unsqueeze(0), encoded);
    const torch::Tensor last = model->logits(features[0][features.size(1) - 1]);
    sum -= torch::log_softmax(last, -1)[token].item<double>();
    read.push_back(token);
  }
  EXPECT_NEAR(before, sum / 4, 1e-5);
}

TEST(Seq2SeqLoss, SmoothingIsPyTorchs) {
  Seq2SeqOptions options = options_of(4);
  options.batches = std::make_shared<PairSource>(
      std::vector<SentencePair>{{{5, 6, 7}, {8, 9, kEnd}}, {{3, 4}, {7, kEnd}}},
      BatchShape{2, 16, 0}, 0);
  const double plain = make_seq2seq(options).objective->loss(0).value.item<double>();
  options.label_smoothing = 0.3;
  const double smoothed = make_seq2seq(options).objective->loss(0).value.item<double>();
  T5Module model = make_t5(options.config, options.products, {}, options.seed);
  const torch::NoGradGuard no_grad;
  const torch::Tensor sources = torch::tensor({{5, 6, 7}, {3, 4, 0}}, torch::kInt64);
  const torch::Tensor read = torch::tensor({{0, 8, 9}, {0, 7, 0}}, torch::kInt64);
  const torch::Tensor labels = torch::tensor({{8, 9, 1}, {7, 1, -100}}, torch::kInt64);
  const torch::Tensor logits = model->logits(
      model->decode(read, model->encode(sources, torch::tensor({3, 2}, torch::kInt64))));
  const auto expected = [&](double share) {
    return torch::nn::functional::cross_entropy(
               logits.flatten(0, 1), labels.flatten(),
               torch::nn::functional::CrossEntropyFuncOptions().ignore_index(-100).label_smoothing(
                   share))
        .item<double>();
  };
  EXPECT_NEAR(plain, expected(0), 1e-5);
  EXPECT_NEAR(smoothed, expected(0.3), 1e-5);
  EXPECT_GT(std::abs(smoothed - plain), 1e-3);
}

TEST(Seq2SeqTeacher, IsWhatTheModelComesCloserTo) {
  const test::TemporaryDirectory directory;
  const fs::path teacher = directory.path() / "teacher";
  run_training(*make_seq2seq(options_of(8)).objective, run_options(teacher, 150), {});
  // A model has nothing to learn from itself.
  Seq2SeqOptions options = options_of(8);
  options.teacher = teacher;
  options.init = teacher;
  EXPECT_NEAR(make_seq2seq(options).objective->loss(0).value.item<double>(), 0, 1e-6);

  options.init.clear();
  options.config.dim = 24;
  options.config.n_encoder_layers = 1;
  const auto student = make_seq2seq(options).objective;
  const std::int64_t n_trained = n_trained_parameters(*student);
  std::vector<StepReport> reports;
  run_training(*student, run_options(directory.path() / "student", 150),
               {.on_step = [&](const StepReport& report) { reports.push_back(report); }});
  EXPECT_LT(n_trained, n_trained_parameters(*make_seq2seq(options_of(8)).objective));
  EXPECT_LT(reports.back().loss, 0.3 * reports.front().loss);
  ASSERT_EQ(reports.back().held_out.size(), 4u);
  EXPECT_EQ(reports.back().held_out[0].first, "loss");
  EXPECT_EQ(reports.back().held_out[3].first, "text_loss");

  options.config.vocabulary_size = kVocabulary + 1;
  EXPECT_THROW(make_seq2seq(options), Error);
}

}  // namespace
}  // namespace outrider::train
