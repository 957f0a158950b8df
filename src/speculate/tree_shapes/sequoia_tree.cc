// SPDX-License-Identifier: Apache-2.0
#include "speculate/tree_shapes/sequoia_tree.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace outrider {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

// F and T of the header for all sizes, and the choices that lead to them.
class Plans {
 public:
  Plans(std::span<const double> accept_by_rank, int n_nodes, int depth)
      : accept_(accept_by_rank), n_nodes_(n_nodes), n_ranks_(static_cast<int>(accept_.size())) {
    const std::size_t n_entries = static_cast<std::size_t>(depth + 1) *
                                  static_cast<std::size_t>(n_ranks_ + 1) *
                                  static_cast<std::size_t>(n_nodes + 1);
    forest_.assign(n_entries, kImpossible);
    first_size_.assign(n_entries, 0);
    for (int level = 0; level <= depth; ++level) fill(level);
  }

  // T(n, d).
  double tree(int n, int d) const {
    if (n == 1) return 1;
    return d == 0 ? kImpossible : 1 + forest_[at(n - 1, d - 1, 0)];
  }

  std::vector<int> n_children(int n, int d) const {
    struct Place {
      int n;
      int d;
    };
    std::vector<Place> places = {{n, d}};
    std::vector<int> counts;
    for (std::size_t place = 0; place < places.size(); ++place) {
      const Place parent = places[place];
      counts.push_back(0);
      int left = parent.n - 1;
      for (int rank = 0; left > 0; ++rank) {
        const int size = first_size_[at(left, parent.d - 1, rank)];
        places.push_back({size, parent.d - 1});
        ++counts.back();
        left -= size;
      }
    }
    while (!counts.empty() && counts.back() == 0) counts.pop_back();
    return counts;
  }

 private:
  std::size_t at(int n, int d, int rank) const {
    return (static_cast<std::size_t>(d) * static_cast<std::size_t>(n_ranks_ + 1) +
            static_cast<std::size_t>(rank)) *
               static_cast<std::size_t>(n_nodes_ + 1) +
           static_cast<std::size_t>(n);
  }

  // Computes F(n, level, rank) from the last rank to the first, since a forest continues with the
  // next rank.
  void fill(int level) {
    forest_[at(0, level, n_ranks_)] = 0;
    for (int rank = n_ranks_ - 1; rank >= 0; --rank) {
      forest_[at(0, level, rank)] = 0;
      for (int n = 1; n <= n_nodes_; ++n) {
        double& best = forest_[at(n, level, rank)];
        for (int size = 1; size <= n; ++size) {
          const double rest = forest_[at(n - size, level, rank + 1)];
          const double subtree = tree(size, level);
          if (rest == kImpossible || subtree == kImpossible) continue;
          const double value = accept_[static_cast<std::size_t>(rank)] * subtree + rest;
          if (value > best) {
            best = value;
            first_size_[at(n, level, rank)] = size;
          }
        }
      }
    }
  }

  std::span<const double> accept_;
  int n_nodes_;
  int n_ranks_;
  std::vector<double> forest_;   // (depth + 1, n_ranks + 1, n_nodes + 1)
  std::vector<int> first_size_;  // the size of the forest's first tree
};

}  // namespace

PlannedTree plan_sequoia_tree(std::span<const double> accept_by_rank, int depth,
                              const RoundCosts& costs) {
  const int n_nodes = static_cast<int>(costs.target_pass.size()) - 1;
  const Plans plans(accept_by_rank, n_nodes, std::max(depth - 1, 0));
  PlannedTree best{.n_children = {}, .tau = 1, .cost_per_token = costs.target_pass[0]};
  int best_n = 0;
  int best_d = 0;
  for (int n = 1; n <= n_nodes; ++n) {
    for (int d = 1; d <= std::min(n, depth); ++d) {
      const double tau = plans.tree(n + 1, d);
      if (tau == kImpossible) continue;
      const double cost =
          (d * costs.draft_level + costs.target_pass[static_cast<std::size_t>(n)]) / tau;
      if (cost < best.cost_per_token) {
        best = {.n_children = {}, .tau = tau, .cost_per_token = cost};
        best_n = n;
        best_d = d;
      }
    }
  }
  if (best_n > 0) best.n_children = plans.n_children(best_n + 1, best_d);
  return best;
}

}  // namespace outrider
