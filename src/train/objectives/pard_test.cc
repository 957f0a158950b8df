// SPDX-License-Identifier: Apache-2.0
// A model learns to draft several tokens in one pass, and drafts them in the engine.
#include "train/objectives/pard.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/config.h"
#include "outrider/error.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"
#include "train/objective.h"
#include "train/training_run.h"

namespace outrider::train {
namespace {

constexpr int kVocabulary = 300;
constexpr TokenId kMask = 299;

// Counting texts: each token is the previous one plus three, so later tokens of a draft are as
// certain as the first.
std::shared_ptr<BatchSource> counting() {
  std::vector<TokenId> stream;
  for (int i = 0; i < 4000; ++i) stream.push_back(i * 3 % 60);
  return std::make_shared<WindowSource>(stream,
                                        BatchShape{.n_sequences = 4, .length = 24, .seed = 1});
}

struct Adaptation {
  Adaptation() {
    test::TinyShape shape;
    shape.vocabulary_size = kVocabulary;
    shape.n_layers = 1;
    shape.dim = 32;
    shape.n_heads = 2;
    shape.n_kv_heads = 2;
    test::write_hugging_face(test::make_tiny_model(shape), directory.path() / "small");
    options.drafter = directory.path() / "small";
    options.products = Products::full;
    options.mask = kMask;
    options.rows.n_drafted = 4;
    options.batches = counting();
    options.held_out = counting();
    options.n_held_out_batches = 2;
    options.export_type = ElementType::f32;
  }
  RunOptions run_options(const char* name, int n_steps) const {
    RunOptions run;
    run.directory = directory.path() / name;
    run.schedule = {.peak = 2e-2, .final_share = 0.1, .n_warmup = 5, .n_steps = n_steps};
    run.optimizer.weight_decay = 0;
    return run;
  }
  test::TemporaryDirectory directory;
  PardOptions options;
};

std::map<std::string, double> figures(Objective& objective) {
  std::map<std::string, double> metrics;
  for (const auto& [name, value] : objective.evaluate()) metrics[name] = value;
  return metrics;
}

TEST(Pard, LearnsEveryTokenOfADraft) {
  Adaptation adaptation;
  const auto objective = make_pard(adaptation.options);
  const std::map<std::string, double> before = figures(*objective);
  EXPECT_LT(before.at("accepted"), 0.5);
  run_training(*objective, adaptation.run_options("out", 120), {});
  const std::map<std::string, double> after = figures(*objective);
  for (int k = 1; k <= 4; ++k) {
    const std::string name = "agreement_" + std::to_string(k);
    EXPECT_GT(after.at(name), 0.9) << name;
  }
  EXPECT_GT(after.at("accepted"), 3.5);
  EXPECT_LT(after.at("loss"), before.at("loss"));
  // The figures are means over complete drafts, whose first tokens belong to text rows.
  double sum = 0;
  for (int k = 1; k <= 4; ++k) sum += after.at("loss_" + std::to_string(k));
  EXPECT_NEAR(after.at("loss"), sum / 4, 1e-6);
}

TEST(Pard, ExportsAModelThatSaysItsMask) {
  Adaptation adaptation;
  const auto objective = make_pard(adaptation.options);
  const std::filesystem::path out = adaptation.directory.path() / "exported";
  objective->export_to(out);
  const ModelConfig config = read_config_json(out);
  EXPECT_EQ(config.mask_token, kMask);
  EXPECT_EQ(config.vocabulary_size, kVocabulary);
}

TEST(Pard, RefusesWhatItCannotDraft) {
  Adaptation adaptation;
  const auto refuses = [&](auto change, const std::string& flag) {
    PardOptions options = adaptation.options;
    change(options);
    try {
      make_pard(options);
      ADD_FAILURE() << flag;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(flag), std::string::npos) << error.what();
    }
  };
  refuses([](PardOptions& o) { o.mask = kVocabulary; }, "mask-token");
  refuses([](PardOptions& o) { o.rows.n_drafted = 1; }, "tokens");
  refuses([](PardOptions& o) { o.rows.keep = 0; }, "keep");
  refuses([](PardOptions& o) { o.rows.min_share = 1.5; }, "least-share");
}

}  // namespace
}  // namespace outrider::train
