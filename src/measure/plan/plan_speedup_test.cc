// SPDX-License-Identifier: Apache-2.0
// The predicted gain of drafts, and the tables of shapes and devices that it uses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "measure/plan/shape_of_file.h"
#include "outrider/error.h"
#include "outrider/speed_plan.h"

namespace outrider {
namespace {

// A device whose passes all cost the same.
Device flat_device() {
  Device device;
  device.name = "flat";
  device.bandwidth_bytes_per_second = 1e30;
  device.bf16_ops_per_second = 1e30;
  device.fixed_seconds = 1;
  return device;
}

TEST(PlanSpeedup, TauOfChains) {
  EXPECT_DOUBLE_EQ(chain_tau(0.5, 0), 1);
  EXPECT_DOUBLE_EQ(chain_tau(0.5, 2), 1.75);
  EXPECT_DOUBLE_EQ(chain_tau(1, 4), 5);
  EXPECT_DOUBLE_EQ(chain_tau(0, 4), 1);
  // docs/measuring.md: 3.36 for four and 4.33 for eight at 0.8.
  EXPECT_NEAR(chain_tau(0.8, 4), (1 - 0.32768) / 0.2, 1e-12);
  EXPECT_NEAR(chain_tau(0.8, 8), (1 - 0.134217728) / 0.2, 1e-12);
}

TEST(PlanSpeedup, ByHand) {
  const ModelShape target = find_shape("llama-3.1-8b");
  const ModelShape drafter = find_shape("llama-3.2-1b");
  SpeedPlanOptions options;
  options.acceptance = {0.5};
  options.length = 2;
  // Every pass takes a second: 1.75 tokens in two levels and one pass.
  const SpeedPlan plan = plan_speedup(target, &drafter, flat_device(), options);
  EXPECT_EQ(plan.asked.n_nodes, 2);
  EXPECT_DOUBLE_EQ(plan.asked.tau, 1.75);
  EXPECT_NEAR(plan.asked.draft_seconds, 2, 1e-9);
  EXPECT_NEAR(plan.asked.pass_seconds, 1, 1e-9);
  EXPECT_NEAR(plan.asked.speedup, 1.75 / 3, 1e-9);
  // No draft pays if it costs as much as the target.
  EXPECT_EQ(plan.best.n_nodes, 0);
  EXPECT_NEAR(plan.best.speedup, 1, 1e-9);
  // Free drafts and passes of equal cost: longer is better.
  const SpeedPlan free = plan_speedup(target, nullptr, flat_device(), options);
  EXPECT_EQ(free.best.n_nodes, kLongestPlannedChain);
  EXPECT_NEAR(free.asked.speedup, 1.75, 1e-9);
}

TEST(PlanSpeedup, GrowsWithAcceptance) {
  const ModelShape target = find_shape("llama-70b");
  const ModelShape drafter = find_shape("llama-1b");
  const Device device = find_device("h200");
  double speedup = 0;
  int length = 0;
  for (const double acceptance : {0.0, 0.3, 0.5, 0.7, 0.9}) {
    SpeedPlanOptions options;
    options.acceptance = {acceptance};
    options.weights = "q4_k";
    const PlannedRound best = plan_speedup(target, &drafter, device, options).best;
    EXPECT_GE(best.speedup, speedup);
    EXPECT_GE(best.n_nodes, length);
    EXPECT_GE(best.speedup, 1);
    speedup = best.speedup;
    length = best.n_nodes;
  }
  EXPECT_GT(length, 1);
}

TEST(PlanSpeedup, SharesByRankMakeTrees) {
  const ModelShape target = find_shape("llama-70b");
  const Device device = find_device("h200");
  SpeedPlanOptions chain;
  SpeedPlanOptions tree;
  tree.acceptance = {0.7, 0.1, 0.05};
  const PlannedRound of_tree = plan_speedup(target, nullptr, device, tree).best;
  EXPECT_GE(of_tree.speedup, plan_speedup(target, nullptr, device, chain).best.speedup);
  EXPECT_GT(of_tree.n_nodes, static_cast<int>(of_tree.level_sizes.size()));
  EXPECT_LE(of_tree.n_nodes, kMaxPlannedNodes);
}

TEST(PlanSpeedup, RefusesWhatCannotBeMeant) {
  const ModelShape target = find_shape("llama-8b");
  const auto plan = [&](std::vector<double> acceptance, int length) {
    SpeedPlanOptions options;
    options.acceptance = std::move(acceptance);
    options.length = length;
    return plan_speedup(target, nullptr, find_device("l4"), options);
  };
  EXPECT_THROW(plan({}, 1), UsageError);
  EXPECT_THROW(plan({1.5}, 1), UsageError);
  EXPECT_THROW(plan({-0.1}, 1), UsageError);
  EXPECT_THROW(plan({0.8, 0.3}, 1), UsageError);
  EXPECT_THROW(plan({0.8}, kLongestPlannedChain + 1), UsageError);
  EXPECT_THROW(plan({0.8}, -2), UsageError);
  EXPECT_NO_THROW(plan({0.8}, 0));
}

// Model cards give their sizes; the shapes agree.
TEST(ModelShapes, HaveTheirNamesParameters) {
  const struct {
    const char* name;
    double billions;
  } cards[] = {{"llama-2-7b", 6.74},      {"llama-3.1-8b", 8.03},   {"llama-3.1-70b", 70.6},
               {"llama-3.1-405b", 405.9}, {"llama-3.2-1b", 1.24},   {"llama-3.2-3b", 3.21},
               {"mistral-7b", 7.25},      {"mixtral-8x7b", 46.7},   {"qwen2.5-0.5b", 0.494},
               {"qwen2.5-7b", 7.62},      {"qwen3-0.6b", 0.596},    {"gemma-2-9b", 9.24},
               {"gemma-3-1b", 1.0},       {"smollm2-135m", 0.1345}, {"smollm2-360m", 0.362}};
  // Biases and norms are not counted: less than a thousandth.
  for (const auto& card : cards) {
    EXPECT_NEAR(find_shape(card.name).n_parameters() * 1e-9 / card.billions, 1, 0.005) << card.name;
  }
}

TEST(ModelShapes, FitTogether) {
  EXPECT_GE(known_shapes().size(), 25U);
  for (const std::string& name : known_shapes()) {
    const ModelShape shape = find_shape(name);
    EXPECT_EQ(shape.name, name);
    EXPECT_EQ(shape.n_heads % shape.n_kv_heads, 0) << name;
    EXPECT_LE(shape.n_window_layers, shape.n_layers) << name;
    EXPECT_EQ(shape.n_window_layers > 0, shape.window > 0) << name;
  }
  EXPECT_EQ(find_shape("llama-70b").name, "llama-3.1-70b");
  EXPECT_THROW(find_shape("llama-9b"), UsageError);
  EXPECT_THROW(find_shape(""), UsageError);
}

TEST(ModelShapes, ComeFromFilesToo) {
  const std::filesystem::path path =
      std::filesystem::path(OUTRIDER_SOURCE_DIR) / "models" / "target";
  const auto model = Model::load(path, {.threads = 1});
  const ModelSummary& summary = model->summary();
  for (const ModelShape& shape : {shape_of_file(path), shape_of_model(*model)}) {
    EXPECT_EQ(shape.name, "target");
    EXPECT_EQ(shape.n_layers, summary.n_layers);
    EXPECT_EQ(shape.dim, summary.dim);
    EXPECT_EQ(shape.n_heads, summary.n_heads);
    EXPECT_EQ(shape.n_kv_heads, summary.n_kv_heads);
    EXPECT_EQ(shape.head_dim, summary.head_dim);
    EXPECT_EQ(shape.hidden_dim, summary.hidden_dim);
    EXPECT_EQ(shape.vocabulary_size, summary.vocabulary_size);
    EXPECT_TRUE(shape.tied_head);
    ASSERT_EQ(shape.stored.size(), 1U);
    EXPECT_EQ(shape.stored[0].type, "bf16");
    const double n_weights = shape.attention_weights() + shape.mlp_weights() + shape.head_weights();
    EXPECT_EQ(shape.stored[0].n_weights, n_weights);
    EXPECT_EQ(shape.stored[0].n_bytes, 2 * n_weights);
  }
  EXPECT_EQ(summary.weight_bytes,
            2 * static_cast<std::int64_t>(shape_of_file(path).n_parameters()));
}

TEST(Devices, HaveFigures) {
  EXPECT_GE(known_devices().size(), 10U);
  for (const std::string& name : known_devices()) {
    const Device device = find_device(name);
    EXPECT_EQ(device.name, name);
    EXPECT_FALSE(device.source.empty()) << name;
    // Today's memory is within these bounds; a wrong unit would not be.
    EXPECT_GT(device.bandwidth_bytes_per_second, 1e11) << name;
    EXPECT_LT(device.bandwidth_bytes_per_second, 1e13) << name;
    EXPECT_GT(device.bf16_ops_per_second, 5e13) << name;
    EXPECT_LT(device.int8_ops_per_second, 1e16) << name;
    EXPECT_GE(device.int8_ops_per_second, 1.9 * device.bf16_ops_per_second) << name;
    EXPECT_FALSE(device.is_measured());
    EXPECT_EQ(device.fixed_seconds, 0) << name;
  }
  EXPECT_THROW(find_device("h20000"), UsageError);
}

// The page's table, with commas in thousands, and without figures that a sheet lacks.
TEST(Devices, StandInTheDocument) {
  std::ifstream file(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "docs" / "plan.md");
  std::map<std::string, std::vector<double>> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    std::erase(line, ',');
    std::istringstream cells(line);
    std::vector<std::string> texts;
    for (std::string cell; std::getline(cells, cell, '|');) texts.push_back(cell);
    ASSERT_GE(texts.size(), 6U) << line;
    std::vector<double>& figures = rows[texts[1].substr(2, texts[1].size() - 4)];
    for (std::size_t i = 2; i < 6; ++i) {
      const bool is_empty = texts[i].find_first_not_of(' ') == std::string::npos;
      figures.push_back(is_empty ? 0 : std::stod(texts[i]));
    }
  }
  EXPECT_EQ(rows.size(), known_devices().size());
  for (const std::string& name : known_devices()) {
    const Device device = find_device(name);
    ASSERT_EQ(rows[name].size(), 4U) << name;
    EXPECT_DOUBLE_EQ(rows[name][0], device.bandwidth_bytes_per_second * 1e-9) << name;
    EXPECT_DOUBLE_EQ(rows[name][1], device.bf16_ops_per_second * 1e-12) << name;
    EXPECT_DOUBLE_EQ(rows[name][2], device.fp8_ops_per_second * 1e-12) << name;
    EXPECT_DOUBLE_EQ(rows[name][3], device.int8_ops_per_second * 1e-12) << name;
  }
}

}  // namespace
}  // namespace outrider
