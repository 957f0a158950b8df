// SPDX-License-Identifier: Apache-2.0
#include "model/pass/routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "base/elementary.h"

namespace outrider {
namespace {

// Without matrices: routing only needs the numbers.
Experts experts_of(int n, int n_used, ExpertWeights weights) {
  Experts experts;
  experts.weights = weights;
  experts.n_used = n_used;
  experts.up.resize(static_cast<std::size_t>(n));
  return experts;
}

// The experts of each row in ascending order, from the slots.
std::vector<std::vector<int>> experts_of_rows(const Routing& routing, const Experts& experts,
                                              int n_rows) {
  std::vector<std::vector<int>> all(static_cast<std::size_t>(n_rows));
  for (const int expert : routing.touched()) {
    const Range slots = routing.slots_of(expert);
    for (std::int64_t slot = slots.begin; slot < slots.end; ++slot) {
      all[static_cast<std::size_t>(routing.row_of(slot))].push_back(expert);
    }
  }
  for (int row = 0; row < n_rows; ++row) {
    for (int place = 0; place < experts.n_used; ++place) {
      const int slot = routing.slot_of(experts, row, place);
      EXPECT_EQ(routing.row_of(slot), row);
      const Range slots =
          routing.slots_of(all[static_cast<std::size_t>(row)][static_cast<std::size_t>(place)]);
      EXPECT_TRUE(slot >= slots.begin && slot < slots.end);
    }
  }
  return all;
}

void place(Routing& routing, const Experts& experts, int n_rows, int n_threads) {
  run_team(n_threads, [&](const Team& team) {
    routing.place(team, experts, team.share(std::int64_t{n_rows} * experts.n_used));
  });
}

std::vector<int> chosen(const std::vector<float>& scores, int n_used) {
  const Experts experts =
      experts_of(static_cast<int>(scores.size()), n_used, ExpertWeights::softmax_used);
  Routing routing;
  routing.resize(1, experts.n(), n_used);
  routing.choose(experts, 0, scores.data());
  place(routing, experts, 1, 1);
  return experts_of_rows(routing, experts, 1)[0];
}

TEST(Routing, ChoosesTheHighestScoresAndOfEqualOnesTheLowestIds) {
  EXPECT_EQ(chosen({1, 5, 2, 4}, 2), (std::vector<int>{1, 3}));
  EXPECT_EQ(chosen({3, 3, 3, 3}, 2), (std::vector<int>{0, 1}));
  EXPECT_EQ(chosen({1, 7, 3, 7, 3, 3}, 3), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(chosen({2, 1, 2, 2}, 1), (std::vector<int>{0}));
  EXPECT_EQ(chosen({-1, -1, -1}, 3), (std::vector<int>{0, 1, 2}));
}

TEST(Routing, WeighsByOneOfTwoSoftmaxes) {
  const std::vector<float> scores = {0.5F, 2, -1, 1.25F};
  double all = 0;
  for (const float score : scores) all += portable_exp(double{score} - 2);
  const double of_two = 1 + portable_exp(-0.75);
  for (const auto& [weights, total] :
       {std::pair{ExpertWeights::softmax, all}, std::pair{ExpertWeights::softmax_used, of_two}}) {
    const Experts experts = experts_of(4, 2, weights);
    Routing routing;
    routing.resize(1, 4, 2);
    routing.choose(experts, 0, scores.data());
    EXPECT_EQ(routing.weight_of(experts, 0, 0), static_cast<float>(1 / total));
    EXPECT_EQ(routing.weight_of(experts, 0, 1), static_cast<float>(portable_exp(-0.75) / total));
  }
}

float sigmoid(float x) { return static_cast<float>(1 / (1 + portable_exp(-double{x}))); }

// For one row.
std::vector<int> ids_of(const Experts& experts, const std::vector<float>& scores) {
  Routing routing;
  routing.resize(1, experts.n(), experts.n_used);
  routing.choose(experts, 0, scores.data());
  place(routing, experts, 1, 1);
  return experts_of_rows(routing, experts, 1)[0];
}

std::vector<float> weights_of(const Experts& experts, const std::vector<float>& scores) {
  Routing routing;
  routing.resize(1, experts.n(), experts.n_used);
  routing.choose(experts, 0, scores.data());
  std::vector<float> weights;
  weights.reserve(static_cast<std::size_t>(experts.n_used));
  for (int place = 0; place < experts.n_used; ++place) {
    weights.push_back(routing.weight_of(experts, 0, place));
  }
  return weights;
}

TEST(Routing, WeighsBySigmoidsAndTheirScale) {
  const std::vector<float> scores = {0.5F, 2, -1, 1.25F};
  const float second = sigmoid(2);
  const float fourth = sigmoid(1.25F);
  Experts experts = experts_of(4, 2, ExpertWeights::sigmoid);
  EXPECT_EQ(weights_of(experts, scores), (std::vector<float>{second, fourth}));
  experts.scale = 2.5F;
  EXPECT_EQ(weights_of(experts, scores), (std::vector<float>{second * 2.5F, fourth * 2.5F}));
  experts.weights = ExpertWeights::sigmoid_used;
  const double sum = double{second} + double{fourth};
  EXPECT_EQ(weights_of(experts, scores),
            (std::vector<float>{static_cast<float>(second / sum) * 2.5F,
                                static_cast<float>(fourth / sum) * 2.5F}));
  // With a softmax as well.
  experts.weights = ExpertWeights::softmax_used;
  const std::vector<float> scaled = weights_of(experts, scores);
  experts.scale = 1;
  const std::vector<float> plain = weights_of(experts, scores);
  EXPECT_EQ(scaled, (std::vector<float>{plain[0] * 2.5F, plain[1] * 2.5F}));
}

// The bias affects only the choice, not the weights; it is added to the sigmoids.
TEST(Routing, ABiasOfTheChoiceChoosesAlone) {
  const std::vector<float> scores = {0.5F, 2, -1, 1.25F};
  Experts experts = experts_of(4, 2, ExpertWeights::sigmoid);
  experts.choice_bias = {0, -0.5F, 0.75F, 0};
  // Sigmoids 0.622, 0.881, 0.269, 0.777.
  EXPECT_EQ(ids_of(experts, scores), (std::vector<int>{2, 3}));
  EXPECT_EQ(weights_of(experts, scores), (std::vector<float>{sigmoid(-1), sigmoid(1.25F)}));
  // Ties: the lowest ids.
  experts.choice_bias = {1, 1, 1, 1};
  EXPECT_EQ(ids_of(experts, {3, 3, 3, 3}), (std::vector<int>{0, 1}));
  // Scores with equal f32 sigmoids tie.
  experts.choice_bias.clear();
  EXPECT_EQ(ids_of(experts, {40, 41, 42, 43}), (std::vector<int>{0, 1}));
}

TEST(Routing, UsesExpertsOfTheBestGroupsAlone) {
  using Worth = ExpertGroups::Worth;
  Experts experts = experts_of(6, 2, ExpertWeights::softmax);
  experts.groups = {.n = 3, .n_used = 1, .worth = Worth::best};
  // By the best expert groups are worth 5, 4, 4.5; by the best two together 5.5, 8, 5.
  const std::vector<float> scores = {5, 0.5F, 4, 4, 4.5F, 0.5F};
  EXPECT_EQ(ids_of(experts, scores), (std::vector<int>{0, 1}));
  experts.groups.worth = Worth::best_two;
  EXPECT_EQ(ids_of(experts, scores), (std::vector<int>{2, 3}));
  experts.groups.n_used = 2;
  EXPECT_EQ(ids_of(experts, scores), (std::vector<int>{0, 2}));
  experts.groups.n_used = 3;
  EXPECT_EQ(ids_of(experts, scores), (std::vector<int>{0, 4}));
  // Ties go to the first groups. With a softmax, weights are computed over all experts, including
  // excluded ones.
  experts.groups.n_used = 1;
  EXPECT_EQ(ids_of(experts, {1, 2, 2, 1, 1, 2}), (std::vector<int>{0, 1}));
  experts.choice_bias = {0, 0, 0, 0, 9, 9};
  EXPECT_EQ(ids_of(experts, scores), (std::vector<int>{4, 5}));
  double all = 0;
  for (const float score : scores) all += portable_exp(double{score} - 5);
  EXPECT_EQ(weights_of(experts, scores)[0], static_cast<float>(portable_exp(-0.5) / all));
}

// Excluded groups stay excluded, however low the others' scores are.
TEST(Routing, GroupsOfLowScoresAreLeftOut) {
  Experts experts = experts_of(8, 3, ExpertWeights::sigmoid_used);
  experts.groups = {.n = 4, .n_used = 2, .worth = ExpertGroups::Worth::best_two};
  experts.choice_bias = std::vector<float>(8, -3);
  const float least = -std::numeric_limits<float>::max();
  EXPECT_EQ(ids_of(experts, {1, least, 0, 0, 1, least, 2, 2}), (std::vector<int>{2, 6, 7}));
}

// NaN scores still choose experts, and show in the weights.
TEST(Routing, LetsNoNumbersShow) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  Experts grouped = experts_of(4, 2, ExpertWeights::sigmoid_used);
  grouped.groups = {.n = 2, .n_used = 1, .worth = ExpertGroups::Worth::best_two};
  grouped.choice_bias = {0, 0, 0, 0};
  for (const std::vector<float>& scores :
       {std::vector<float>{none, 1, 2, 3}, std::vector<float>{2, 3, 1, none}}) {
    EXPECT_TRUE(std::isnan(weights_of(grouped, scores)[0]));
    EXPECT_EQ(ids_of(grouped, scores).size(), 2U);
  }
  const Experts experts = experts_of(4, 2, ExpertWeights::softmax_used);
  for (const std::vector<float>& scores :
       {std::vector<float>{none, none, none, none}, std::vector<float>{none, 1, 2, 3},
        std::vector<float>{2, 3, 1, none}}) {
    Routing routing;
    routing.resize(1, 4, 2);
    routing.choose(experts, 0, scores.data());
    place(routing, experts, 1, 1);
    EXPECT_EQ(experts_of_rows(routing, experts, 1)[0].size(), 2U);
    EXPECT_TRUE(std::isnan(routing.weight_of(experts, 0, 0)));
  }
}

// Compares with a sort, for random scores with many ties, on any number of threads.
TEST(Routing, GathersRowsByExpert) {
  std::mt19937 random(5);
  for (const auto& [n, n_used, n_rows] :
       {std::tuple{8, 2, 1}, std::tuple{8, 2, 13}, std::tuple{5, 5, 4}, std::tuple{128, 8, 40}}) {
    for (const int n_threads : {1, 2, 3}) {
      const Experts experts = experts_of(n, n_used, ExpertWeights::softmax);
      Routing routing;
      routing.resize(n_rows, n, n_used);
      routing.start_pass();
      std::vector<std::vector<int>> expected;
      for (int row = 0; row < n_rows; ++row) {
        std::vector<float> scores(static_cast<std::size_t>(n));
        for (float& score : scores) score = static_cast<float>(random() % 6);
        routing.choose(experts, row, scores.data());
        std::vector<int> ids(scores.size());
        for (std::size_t id = 0; id < ids.size(); ++id) ids[id] = static_cast<int>(id);
        std::stable_sort(ids.begin(), ids.end(), [&](int left, int right) {
          return scores[static_cast<std::size_t>(left)] > scores[static_cast<std::size_t>(right)];
        });
        ids.resize(static_cast<std::size_t>(n_used));
        std::sort(ids.begin(), ids.end());
        expected.push_back(std::move(ids));
      }
      place(routing, experts, n_rows, n_threads);
      EXPECT_EQ(experts_of_rows(routing, experts, n_rows), expected);
      // Slots are consecutive, with each expert's rows ascending.
      std::int64_t next = 0;
      for (const int expert : routing.touched()) {
        const Range slots = routing.slots_of(expert);
        EXPECT_EQ(slots.begin, next);
        for (std::int64_t slot = slots.begin + 1; slot < slots.end; ++slot) {
          EXPECT_LT(routing.row_of(slot - 1), routing.row_of(slot));
        }
        next = slots.end;
      }
      EXPECT_EQ(next, std::int64_t{n_rows} * n_used);
      EXPECT_EQ(routing.touched_a_layer(), static_cast<double>(routing.touched().size()));
    }
  }
}

}  // namespace
}  // namespace outrider
