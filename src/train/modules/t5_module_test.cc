// SPDX-License-Identifier: Apache-2.0
// The encoder-decoder in training, compared with Hugging Face transformers on the same weights
// (tests/golden/make/make_seq2seq_golden.py), and with itself.
#include "train/modules/t5_module.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "tests/support/gradient_differences.h"
#include "tests/support/near.h"
#include "tests/support/temporary_directory.h"
#include "train/losses/losses.h"
#include "train/objective.h"
#include "train/objectives/seq2seq.h"
#include "train/output/model_directory.h"

namespace outrider::train {
namespace {

using test::expect_gradient_is_difference;
using test::scattered_entries;
using torch::Tensor;

// The script's constants and formulas.
constexpr int kVocabulary = 40;
constexpr int kAnswer = 12;
constexpr std::int64_t kSourceLengths[] = {30, 17};
constexpr std::int64_t kTargetLengths[] = {26, 11};
// Both sides compute values of about 1 in f32, in different orders.
constexpr double kTolerance = 1e-5;

T5Config tiny_config() {
  T5Config config;
  config.vocabulary_size = kVocabulary;
  config.dim = 16;
  config.head_dim = 6;
  config.hidden_dim = 24;
  config.n_heads = 3;
  config.n_encoder_layers = 2;
  config.n_decoder_layers = 3;
  config.n_buckets = 8;
  config.max_distance = 20;
  return config;
}

Tensor wave(std::size_t ordinal, std::int64_t n) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(i);
    values.push_back(std::sin(0.7 * x + 0.01 * x * x + 1.3 * static_cast<double>(ordinal)));
  }
  return torch::tensor(values, torch::kFloat64);
}

std::vector<std::string> sorted_names(const T5Module& model) {
  std::vector<std::string> names = model->named_parameters().keys();
  std::sort(names.begin(), names.end());
  return names;
}

T5Module wave_model() {
  T5Module model = make_t5(tiny_config(), Products::full, {}, 1);
  const torch::NoGradGuard no_grad;
  const auto parameters = model->named_parameters();
  const std::vector<std::string> names = sorted_names(model);
  for (std::size_t ordinal = 0; ordinal < names.size(); ++ordinal) {
    Tensor parameter = parameters[names[ordinal]];
    const Tensor values = wave(ordinal, parameter.numel()).view(parameter.sizes());
    const bool is_norm = names[ordinal].ends_with("norm.weight");
    parameter.copy_(is_norm ? 1 + 0.1 * values : 0.3 * values);
  }
  return model;
}

// The two texts of one side, padded with 0: (2, length of the first).
Tensor texts(const std::int64_t (&lengths)[2],
             std::int64_t (*number)(std::int64_t i, std::int64_t s)) {
  Tensor all = torch::zeros({2, lengths[0]}, torch::kInt64);
  for (std::int64_t s = 0; s < 2; ++s) {
    const std::int64_t n = lengths[s];
    for (std::int64_t i = 0; i < n; ++i) {
      all[s][i] = i + 1 == n ? 1 : 2 + number(i, s) % (kVocabulary - 2);
    }
  }
  return all;
}
Tensor sources() {
  return texts(kSourceLengths,
               [](std::int64_t i, std::int64_t s) { return 7 * i + 11 * s + i * i; });
}
Tensor targets() {
  return texts(kTargetLengths,
               [](std::int64_t i, std::int64_t s) { return 5 * i + 3 * s + i * i * i; });
}
Tensor source_lengths() {
  return torch::tensor({kSourceLengths[0], kSourceLengths[1]}, torch::kInt64);
}
// Shifted by one place, after the decoder's start token.
Tensor read_by_decoder() {
  const Tensor all = targets();
  return torch::cat({torch::zeros({2, 1}, torch::kInt64), all.narrow(1, 0, all.size(1) - 1)}, 1);
}

Tensor logits_of(T5Module& model) {
  const Encoded encoded = model->encode(sources(), source_lengths());
  return model->logits(model->decode(read_by_decoder(), encoded));
}

Tensor loss_of(T5Module& model) {
  const Tensor rows = cross_entropy_rows(logits_of(model).flatten(0, 1), targets().flatten());
  Tensor weights = torch::zeros({2, kTargetLengths[0]}, rows.options().requires_grad(false));
  for (std::int64_t s = 0; s < 2; ++s) weights[s].narrow(0, 0, kTargetLengths[s]).fill_(1);
  return weighted_mean(rows, weights.flatten());
}

nlohmann::json golden() {
  std::ifstream file(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" /
                     "seq2seq.json");
  return nlohmann::json::parse(file);
}

TEST(T5Module, BucketsOfDistancesAreTransformers) {
  const nlohmann::json expected = golden();
  int n_compared = 0;
  for (const nlohmann::json& one : expected["buckets"]) {
    int distance = -140;
    for (const int bucket : one["buckets"].get<std::vector<int>>()) {
      EXPECT_EQ(
          relative_position_bucket(distance, one["both_ways"].get<bool>(),
                                   one["n_buckets"].get<int>(), one["max_distance"].get<int>()),
          bucket)
          << distance << " " << one["both_ways"] << " " << one["n_buckets"];
      ++distance;
      ++n_compared;
    }
  }
  EXPECT_EQ(n_compared, 6 * 281);
}

TEST(T5Module, LogitsAreTransformers) {
  T5Module model = wave_model();
  const torch::NoGradGuard no_grad;
  const Tensor logits = logits_of(model);
  const nlohmann::json expected = golden();
  for (std::int64_t s = 0; s < 2; ++s) {
    const auto row = expected["logits"][static_cast<std::size_t>(s)].get<std::vector<double>>();
    ASSERT_EQ(row.size(), std::size_t{kVocabulary});
    for (std::size_t id = 0; id < row.size(); ++id) {
      EXPECT_NEAR(logits[s][kTargetLengths[s] - 1][static_cast<std::int64_t>(id)].item<double>(),
                  row[id], kTolerance)
          << s << " " << id;
    }
  }
}

TEST(T5Module, LossAndGradientsAreTransformers) {
  T5Module model = wave_model();
  const Tensor loss = loss_of(model);
  const nlohmann::json expected = golden();
  EXPECT_NEAR(loss.item<double>(), expected["loss"].get<double>(), kTolerance);
  loss.backward();
  const auto parameters = model->named_parameters();
  const std::vector<std::string> names = sorted_names(model);
  ASSERT_EQ(names.size(), expected["gradients"].size());
  for (std::size_t ordinal = 0; ordinal < names.size(); ++ordinal) {
    const std::string& name = names[ordinal];
    ASSERT_TRUE(expected["gradients"].contains(name)) << name;
    const nlohmann::json& one = expected["gradients"][name];
    const Tensor gradient = parameters[name].grad().to(torch::kFloat64).flatten();
    // A sum of up to 640 products of such gradient elements.
    const double tolerance = kTolerance * std::max(1.0, one["norm"].get<double>());
    EXPECT_NEAR(gradient.norm().item<double>(), one["norm"].get<double>(), tolerance) << name;
    EXPECT_NEAR((gradient * wave(ordinal + 50, gradient.numel())).sum().item<double>(),
                one["wave"].get<double>(), 10 * tolerance)
        << name;
  }
}

TEST(T5Module, SmoothedLossIsTransformers) {
  const test::TemporaryDirectory directory;
  write_parameters(directory.path(), "model.safetensors", *wave_model(), ElementType::f32);
  const auto list = [](const Tensor& text, std::int64_t n) {
    std::vector<TokenId> tokens;
    for (std::int64_t i = 0; i < n; ++i) tokens.push_back(text[i].item<TokenId>());
    return tokens;
  };
  std::vector<SentencePair> pairs;
  for (std::int64_t s = 0; s < 2; ++s) {
    pairs.push_back({list(sources()[s], kSourceLengths[s]), list(targets()[s], kTargetLengths[s])});
  }
  Seq2SeqOptions options;
  options.config = tiny_config();
  options.products = Products::full;
  options.init = directory.path();
  options.batches =
      std::make_shared<PairSource>(pairs, BatchShape{.n_sequences = 2, .length = 30, .seed = 0}, 0);
  const auto loss = [&options] {
    return make_seq2seq(options).objective->loss(0).value.item<double>();
  };
  EXPECT_NEAR(loss(), golden()["loss"].get<double>(), kTolerance);
  options.label_smoothing = 0.1;
  EXPECT_NEAR(loss(), golden()["smoothed_loss"].get<double>(), kTolerance);
}

TEST(T5Module, GreedyAnswersAreTransformers) {
  T5Module model = wave_model();
  const auto answers = answer_greedily(model, sources(), source_lengths(), kAnswer);
  EXPECT_EQ(answers, golden()["answers"].get<std::vector<std::vector<TokenId>>>());
  EXPECT_TRUE(model->is_training());
}

// Rows without a token exist: the answer is the likeliest of the others, as computed by hand.
TEST(T5Module, GreedyAnswersPassOverWhatIsNeverSaid) {
  T5Module model = wave_model();
  const auto free = answer_greedily(model, sources(), source_lengths(), kAnswer);
  ASSERT_FALSE(free[0].empty());
  const std::vector<TokenId> never = {kVocabulary - 1, free[0].front(), tiny_config().end};
  const auto answers = answer_greedily(model, sources(), source_lengths(), kAnswer, never);
  EXPECT_NE(answers, free);
  const torch::NoGradGuard no_grad;
  for (std::int64_t s = 0; s < 2; ++s) {
    const Encoded encoded = model->encode(sources().narrow(0, s, 1).narrow(1, 0, kSourceLengths[s]),
                                          source_lengths().narrow(0, s, 1));
    std::vector<std::int64_t> read = {0};
    std::vector<TokenId> said;
    while (said.size() < std::size_t{kAnswer}) {
      const Tensor logits =
          model->logits(model->decode(torch::tensor(read, torch::kInt64).unsqueeze(0), encoded))[0]
              .select(0, static_cast<std::int64_t>(said.size()));
      TokenId best = kNoToken;
      for (TokenId id = 0; id < kVocabulary; ++id) {
        if (std::find(never.begin(), never.end(), id) != never.end()) continue;
        if (best == kNoToken || logits[id].item<float>() > logits[best].item<float>()) best = id;
      }
      said.push_back(best);
      read.push_back(best);
    }
    EXPECT_EQ(answers[static_cast<std::size_t>(s)], said) << s;
  }
}

// The fused steps have gradients of their own; in double, libtorch's replace them.
TEST(T5Module, GradientsAreDifferences) {
  T5Module model = wave_model();
  model->to(torch::kFloat64);
  loss_of(model).backward();
  for (const auto& parameter : model->named_parameters()) {
    expect_gradient_is_difference(
        parameter.value(), [&] { return loss_of(model); }, scattered_entries(parameter.value(), 2),
        1e-7, parameter.key());
  }
}

TEST(T5Module, PaddingAndNeighboursChangeNothing) {
  T5Module model = wave_model();
  model->to(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const Tensor together = logits_of(model)[1].narrow(0, 0, kTargetLengths[1]);
  const Encoded encoded = model->encode(sources().narrow(0, 1, 1).narrow(1, 0, kSourceLengths[1]),
                                        source_lengths().narrow(0, 1, 1));
  EXPECT_FALSE(encoded.mask.defined());
  const Tensor alone = model->logits(
      model->decode(read_by_decoder().narrow(0, 1, 1).narrow(1, 0, kTargetLengths[1]), encoded))[0];
  // The same sums plus the padding's zeros.
  EXPECT_LT((together - alone).abs().max().item<double>(), 1e-12);
}

TEST(T5Module, GoesOnFromThePast) {
  T5Module model = wave_model();
  model->to(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const Encoded encoded = model->encode(sources(), source_lengths());
  const Tensor read = read_by_decoder();
  const Tensor whole = model->decode(read, encoded);
  T5Past past;
  const Tensor pieces = torch::cat({model->decode(read.narrow(1, 0, 9), encoded, &past),
                                    model->decode(read.narrow(1, 9, 1), encoded, &past),
                                    model->decode(read.narrow(1, 10, 16), encoded, &past)},
                                   1);
  EXPECT_LT((whole - pieces).abs().max().item<double>(), 1e-12);
}

TEST(T5Module, LeavesAShareOutWhileItLearns) {
  T5Module model = wave_model();
  const torch::NoGradGuard no_grad;
  const Tensor whole = logits_of(model);
  model->set_dropout(0.3);
  torch::manual_seed(1);
  const Tensor first = logits_of(model);
  EXPECT_FALSE(torch::equal(first, whole));
  EXPECT_FALSE(torch::equal(logits_of(model), first));
  torch::manual_seed(1);
  EXPECT_TRUE(torch::equal(logits_of(model), first));
  model->eval();
  EXPECT_TRUE(torch::equal(logits_of(model), whole));
}

// A model that is read back equals the one that was written, including its shape.
TEST(T5Module, StartsFromWhatWasExported) {
  T5Module model = wave_model();
  T5Config config = tiny_config();
  config.padding = 3;
  config.start = 4;
  config.end = 5;
  const test::TemporaryDirectory directory;
  write_parameters(directory.path(), "model.safetensors", *model, ElementType::f32);
  write_json(directory.path(), "config.json", t5_config_json(config, ElementType::f32, 0.1));
  const T5Config read = read_t5_config(directory.path());
  EXPECT_EQ(t5_config_json(read, ElementType::f32, 0.1),
            t5_config_json(config, ElementType::f32, 0.1));
  T5Module again = make_t5(read, Products::full, directory.path(), 4);
  const auto before = model->named_parameters();
  for (const auto& parameter : again->named_parameters()) {
    EXPECT_TRUE(torch::equal(parameter.value(), before[parameter.key()])) << parameter.key();
  }
  config.hidden_dim = 32;
  EXPECT_THROW(make_t5(config, Products::full, directory.path(), 4), Error);
}

// transformers 5 declares every T5's output matrix tied to the embedding. The weights show whether
// it has one of its own.
TEST(T5Module, TheWeightsSayWhetherTheOutputMatrixIsTied) {
  T5Module model = wave_model();
  const test::TemporaryDirectory directory;
  auto json = t5_config_json(tiny_config(), ElementType::f32, 0.1);
  json["tie_word_embeddings"] = true;
  json["scale_decoder_outputs"] = false;
  write_json(directory.path(), "config.json", json);
  write_parameters(directory.path(), "model.safetensors", *model, ElementType::f32);
  T5Module again = make_t5(read_t5_config(directory.path()), Products::full, directory.path(), 1);
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(torch::equal(logits_of(again), logits_of(model)));

  const auto tied = std::make_shared<torch::nn::Module>();
  for (const auto& child : model->named_children()) {
    if (child.key() != "lm_head") tied->register_module(child.key(), child.value());
  }
  write_parameters(directory.path(), "model.safetensors", *tied, ElementType::f32);
  try {
    make_t5(read_t5_config(directory.path()), Products::full, directory.path(), 1);
    ADD_FAILURE() << "a tied model was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("lm_head.weight"), std::string::npos) << error.what();
  }
}

TEST(T5Module, RefusesOtherKindsByName) {
  const test::TemporaryDirectory directory;
  struct Case {
    const char* key;
    nlohmann::ordered_json value;
  };
  const Case cases[] = {{"model_type", "umt5"},
                        {"feed_forward_proj", "relu"},
                        {"d_model", -1},
                        {"d_model", "wide"},
                        {"d_kv", 1LL << 40},
                        {"layer_norm_epsilon", 0},
                        {"tie_word_embeddings", true},
                        {"scale_decoder_outputs", true},
                        {"pad_token_id", kVocabulary},
                        {"decoder_start_token_id", 90000},
                        {"eos_token_id", kVocabulary},
                        {"eos_token_id", -1},
                        {"num_heads", nullptr},
                        {"relative_attention_num_buckets", 2}};
  for (const Case& one : cases) {
    auto json = t5_config_json(tiny_config(), ElementType::f32, 0);
    json[one.key] = one.value;
    write_json(directory.path(), "config.json", json);
    try {
      read_t5_config(directory.path());
      ADD_FAILURE() << one.key << " " << one.value;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(one.key), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace outrider::train
