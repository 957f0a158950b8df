// SPDX-License-Identifier: Apache-2.0
#include "model/pass/routing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/elementary.h"

namespace outrider {
namespace {

// NaN comes first, so that it shows in the weights.
bool is_better(float score, float other) {
  return score > other || (std::isnan(score) && !std::isnan(other));
}

// Writes the ids of the n_used best of n scores, best first.
void choose_best(const float* scores, int n, int n_used, int* ids) {
  int n_chosen = 0;
  for (int id = 0; id < n; ++id) {
    int place = n_chosen;
    while (place > 0 && is_better(scores[id], scores[ids[place - 1]])) --place;
    if (place == n_used) continue;
    n_chosen = std::min(n_chosen + 1, n_used);
    std::copy_backward(ids + place, ids + n_chosen - 1, ids + n_chosen);
    ids[place] = id;
  }
}

// Sum of e^(score - largest), in the order of ids.
double total_of(const float* scores, float largest, std::span<const int> ids) {
  double total = 0;
  for (const int id : ids) total += portable_exp(double{scores[id]} - largest);
  return total;
}

double total_of(const float* scores, float largest, int n) {
  double total = 0;
  for (int id = 0; id < n; ++id) total += portable_exp(double{scores[id]} - largest);
  return total;
}

// DeepSeek's: keeps a sum of sigmoids above 0.
constexpr double kMinSum = 1e-20;

bool is_sigmoid(ExpertWeights weights) {
  return weights == ExpertWeights::sigmoid || weights == ExpertWeights::sigmoid_used;
}

void weigh_by_sigmoids(const Experts& experts, const float* sigmoids, std::span<const int> used,
                       float* weights) {
  double sum = 0;
  for (const int id : used) sum += double{sigmoids[id]};
  for (std::size_t i = 0; i < used.size(); ++i) {
    const float sigmoid = sigmoids[used[i]];
    weights[i] = experts.weights == ExpertWeights::sigmoid
                     ? sigmoid * experts.scale
                     : static_cast<float>(double{sigmoid} / (sum + kMinSum)) * experts.scale;
    if (!experts.scales.empty()) weights[i] *= experts.scales[static_cast<std::size_t>(used[i])];
  }
}

// A group's worth from the merits of its n experts. A NaN comes first here as well.
float worth_of(const float* merits, int n, ExpertGroups::Worth worth) {
  std::array<int, 2> best;
  const int n_best = worth == ExpertGroups::Worth::best_two ? std::min(n, 2) : 1;
  choose_best(merits, n, n_best, best.data());
  return n_best == 2 ? merits[best[0]] + merits[best[1]] : merits[best[0]];
}

// Sets the merits of experts outside the best groups to -infinity. groups.n is at most
// kMaxExperts.
void leave_best_groups(const ExpertGroups& groups, int n, float* merits) {
  const int size = n / groups.n;
  std::array<float, kMaxExperts> worths;
  std::array<int, kMaxExperts> best;
  for (int group = 0; group < groups.n; ++group) {
    worths[static_cast<std::size_t>(group)] = worth_of(merits + group * size, size, groups.worth);
  }
  choose_best(worths.data(), groups.n, groups.n_used, best.data());
  std::sort(best.begin(), best.begin() + groups.n_used);
  int next = 0;
  for (int group = 0; group < groups.n; ++group) {
    if (next < groups.n_used && best[static_cast<std::size_t>(next)] == group) {
      ++next;
    } else {
      std::fill_n(merits + group * size, size, -std::numeric_limits<float>::infinity());
    }
  }
}

}  // namespace

void Routing::resize(int n_rows, int n_experts, int n_used) {
  const auto grow = [](auto& vector, int n) {
    if (vector.size() < static_cast<std::size_t>(n)) vector.resize(static_cast<std::size_t>(n));
  };
  n_rows_ = n_rows;
  grow(ids_, n_rows * n_used);
  grow(weights_, n_rows * n_used);
  grow(slots_, n_rows * n_used);
  grow(rows_, n_rows * n_used);
  grow(experts_, n_rows * n_used);
  grow(first_slots_, n_experts + 1);
  grow(touched_, n_experts);
}

void Routing::choose(const Experts& experts, int row, const float* scores) {
  const int n = experts.n();
  const std::size_t at = index(experts, row, 0);
  int* const ids = ids_.data() + at;
  const std::span<const int> used(ids, static_cast<std::size_t>(experts.n_used));
  std::array<float, kMaxExperts> sigmoids;
  if (is_sigmoid(experts.weights)) {
    for (int id = 0; id < n; ++id) {
      sigmoids[static_cast<std::size_t>(id)] =
          static_cast<float>(1 / (1 + portable_exp(-double{scores[id]})));
    }
    scores = sigmoids.data();
  }
  std::array<float, kMaxExperts> merits;
  const float* chosen_by = scores;
  if (!experts.choice_bias.empty() || experts.groups.choose()) {
    std::copy_n(scores, n, merits.begin());
    for (std::size_t id = 0; id < experts.choice_bias.size(); ++id) {
      merits[id] += experts.choice_bias[id];
    }
    if (experts.groups.choose()) leave_best_groups(experts.groups, n, merits.data());
    chosen_by = merits.data();
  }
  choose_best(chosen_by, n, experts.n_used, ids);
  const int best = ids[0];
  std::sort(ids, ids + experts.n_used);
  if (is_sigmoid(experts.weights)) {
    weigh_by_sigmoids(experts, scores, used, &weights_[at]);
    return;
  }
  int highest = best;
  if (chosen_by != scores) choose_best(scores, n, 1, &highest);
  const float largest = scores[highest];
  const double total = experts.weights == ExpertWeights::softmax ? total_of(scores, largest, n)
                                                                 : total_of(scores, largest, used);
  for (std::size_t i = 0; i < used.size(); ++i) {
    const auto share = static_cast<float>(portable_exp(double{scores[used[i]]} - largest) / total);
    weights_[at + i] = share * experts.scale;
    if (!experts.scales.empty()) {
      weights_[at + i] *= experts.scales[static_cast<std::size_t>(used[i])];
    }
  }
}

std::span<const int> Routing::touched_of(const Experts& experts) const {
  const std::span<const int> all = touched();
  const Range own = experts.own_ids();
  const auto begin = std::lower_bound(all.begin(), all.end(), own.begin);
  const auto end = std::lower_bound(begin, all.end(), own.end);
  return {begin, end};
}

// Every thread counts for itself: that is cheaper than another barrier.
void Routing::place(const Team& team, const Experts& experts, const Range& slots) {
  const std::size_t n = index(experts, n_rows_, 0);
  std::array<int, kMaxExperts + 1> next;  // slot of each expert's next row
  std::fill_n(next.begin(), experts.n() + 1, 0);
  for (std::size_t i = 0; i < n; ++i) ++next[static_cast<std::size_t>(ids_[i]) + 1];
  for (std::size_t id = 0; id < experts.up.size(); ++id) next[id + 1] += next[id];
  if (team.index() == 0) {
    std::copy_n(next.begin(), experts.n() + 1, first_slots_.begin());
    n_touched_ = 0;
    for (int id = 0; id < experts.n(); ++id) {
      const Range its = slots_of(id);
      if (its.begin < its.end) touched_[static_cast<std::size_t>(n_touched_++)] = id;
    }
    n_touched_in_all_ += n_touched_;
    ++n_layers_;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const int slot = next[static_cast<std::size_t>(ids_[i])]++;
    if (slot < slots.begin || slot >= slots.end) continue;
    slots_[i] = slot;
    experts_[static_cast<std::size_t>(slot)] = ids_[i];
    rows_[static_cast<std::size_t>(slot)] =
        static_cast<int>(i / static_cast<std::size_t>(experts.n_used));
  }
}

}  // namespace outrider
