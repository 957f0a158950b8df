#include "model/pass/routing.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/elementary.h"

namespace outrider {
namespace {

// What is no number comes first, so that it shows in the weights.
bool is_better(float score, float other) {
  return score > other || (std::isnan(score) && !std::isnan(other));
}

// The n_used best of n scores, best first, into ids.
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
  const std::size_t at = index(experts, row, 0);
  int* const ids = ids_.data() + at;
  choose_best(scores, experts.n(), experts.n_used, ids);
  const float largest = scores[ids[0]];
  std::sort(ids, ids + experts.n_used);
  const std::span<const int> used(ids, static_cast<std::size_t>(experts.n_used));
  const double total = experts.weights == ExpertWeights::softmax
                           ? total_of(scores, largest, experts.n())
                           : total_of(scores, largest, used);
  for (std::size_t i = 0; i < used.size(); ++i) {
    weights_[at + i] = static_cast<float>(portable_exp(double{scores[used[i]]} - largest) / total);
  }
}

// Every thread counts for itself: that takes less than a barrier more.
void Routing::place(const Team& team, const Experts& experts, const Range& slots) {
  const std::size_t n = index(experts, n_rows_, 0);
  std::array<int, kMostExperts + 1> next;  // slot of each expert's next row
  std::fill_n(next.begin(), experts.n() + 1, 0);
  for (std::size_t i = 0; i < n; ++i) ++next[static_cast<std::size_t>(ids_[i]) + 1];
  for (std::size_t id = 0; id < experts.gate.size(); ++id) next[id + 1] += next[id];
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
