// SPDX-License-Identifier: Apache-2.0
// Shared by tests of heads on a frozen target: the target, the batch and the results of the golden
// program (tests/golden/make/make_heads_golden.py), and every kind of head on that target.
#ifndef OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_HEADS_H_
#define OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_HEADS_H_

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/models/tiny_heads.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/one_batch.h"
#include "tests/support/temporary_directory.h"
#include "train/objective.h"
#include "train/objectives/eagle.h"
#include "train/objectives/eagle3.h"
#include "train/objectives/lm.h"
#include "train/objectives/medusa.h"
#include "train/objectives/mtp.h"
#include "train/objectives/parallel_eagle.h"

namespace outrider::test {

inline void fill_with_golden_values(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module.named_parameters()) {
    const std::vector<std::int64_t> shape = parameter.value().sizes().vec();
    parameter.value().copy_(
        torch::tensor(chirp(parameter.key(), shape), torch::kFloat32).view(shape));
  }
}

inline const nlohmann::json& golden_heads() {
  static const nlohmann::json kGolden = nlohmann::json::parse(std::ifstream(
      std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" / "heads.json"));
  return kGolden;
}

inline std::shared_ptr<train::BatchSource> golden_batch() {
  train::Batch batch{.n_sequences = 0, .length = 0, .tokens = {}, .weights = {}};
  for (const auto& row : golden_heads()["tokens"]) {
    ++batch.n_sequences;
    batch.length = static_cast<int>(row.size());
    for (const auto& token : row) batch.tokens.push_back(token);
  }
  for (const auto& row : golden_heads()["weights"]) {
    for (const auto& weight : row) batch.weights.push_back(weight);
  }
  return std::make_shared<OneBatch>(std::move(batch));
}

// The golden program's target, in a temporary directory.
class GoldenHeads : public ::testing::Test {
 protected:
  GoldenHeads() {
    write_hugging_face(golden_target(), target_path());
    run_.target = std::make_shared<train::Teacher>(target_path(), 1);
    run_.batches = golden_batch();
    run_.held_out = run_.batches;
    run_.n_held_out_batches = 1;
    run_.products = train::Products::full;
    run_.export_type = ElementType::f32;
  }

  std::filesystem::path target_path() const { return directory_.path() / "target"; }
  std::filesystem::path out() const { return directory_.path() / "out"; }

  std::shared_ptr<train::Objective> eagle(train::EagleInputs inputs, double noise = 0) const {
    return train::make_eagle({.run = run_, .inputs = inputs, .noise = noise});
  }
  std::shared_ptr<train::Objective> eagle3(bool reduced) const {
    train::Eagle3Options options{.run = run_, .n_steps = 4};
    if (reduced) {
      options.draft_vocabulary = golden_heads()["draft_vocabulary"].get<std::vector<TokenId>>();
    }
    return train::make_eagle3(options);
  }
  std::shared_ptr<train::Objective> parallel_eagle() const {
    return train::make_parallel_eagle(
        {.run = run_,
         .n_layers = 2,
         .rows = {.n_drafted = 3},
         .mask = 1,
         .draft_vocabulary = golden_heads()["draft_vocabulary"].get<std::vector<TokenId>>()});
  }
  std::shared_ptr<train::Objective> medusa(bool own) const {
    return train::make_medusa({.run = run_, .n_heads = 3, .own_lm_head = own});
  }
  std::shared_ptr<train::Objective> mtp() const {
    return train::make_mtp({.run = run_, .target_directory = target_path(), .n_modules = 2});
  }
  std::shared_ptr<train::Objective> lm() const {
    train::LmOptions options;
    options.config = run_.target->config();
    options.products = train::Products::full;
    options.batches = run_.batches;
    options.held_out = run_.batches;
    options.n_held_out_batches = 1;
    options.tokenizer = target_path();
    options.export_type = ElementType::f32;
    options.n_mtp_modules = 2;
    return train::make_lm(options);
  }

  TemporaryDirectory directory_;
  train::HeadRun run_;
};

// The metrics under their names in the golden file.
inline std::map<std::string, double> as_golden(const std::vector<train::Metric>& metrics) {
  std::map<std::string, double> named;
  for (const auto& [name, value] : metrics) {
    std::string plain = name.starts_with("mtp_") ? name.substr(4) : name;
    if (plain == "agreement") plain = "agreement_0";
    named[plain] = value;
  }
  return named;
}

// The engine's features and the head are f32, the golden program is f64.
inline constexpr double kGoldenTolerance = 1e-5;

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_HEADS_H_
