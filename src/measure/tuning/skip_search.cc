// SPDX-License-Identifier: Apache-2.0
#include "measure/tuning/skip_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <set>

namespace outrider {
namespace {

// The best quarter of the trials counts as good. hyperopt, a library with a tree-structured Parzen
// estimator (skip_search.h), does the same.
constexpr std::size_t kGoodOneIn = 4;
// The number of candidates from which the most promising is tried: hyperopt's default.
constexpr int kCandidates = 24;
// One trial in three is the best subset with one layer changed: for dependencies between layers,
// and as a final refinement.
constexpr std::size_t kNeighbourOneIn = 3;
// After this many draws no untried subset is expected any more.
constexpr int kMaxDraws = 10'000;

class Search {
 public:
  Search(int n_layers, std::uint64_t seed,
         const std::function<double(const std::vector<int>&)>& score)
      : n_layers_(static_cast<std::size_t>(n_layers)), random_(seed), score_(&score) {}

  std::size_t n_trials() const { return trials_.size(); }

  void try_all() {
    Choice choice(n_layers_, false);
    const std::uint64_t n_subsets = std::uint64_t{1} << n_layers_;
    for (std::uint64_t bits = 1; bits + 1 < n_subsets; ++bits) {
      for (std::size_t layer = 0; layer < n_layers_; ++layer) choice[layer] = (bits >> layer) & 1U;
      run(choice);
    }
  }

  void try_single(std::size_t layer) {
    Choice choice(n_layers_, false);
    choice[layer] = true;
    run(choice);
  }

  // Scores one more subset. Returns false, and scores none, if it found no untried subset.
  bool try_next() {
    std::stable_sort(trials_.begin(), trials_.end(),
                     [](const Trial& a, const Trial& b) { return a.score > b.score; });
    Choice choice;
    const bool near_best = trials_.size() % kNeighbourOneIn == 0;
    if (!(near_best && neighbour(choice)) && !promising(choice)) return false;
    run(choice);
    return true;
  }

 private:
  using Choice = std::vector<bool>;  // per layer: skipped or not
  struct Trial {
    Choice choice;
    double score;
  };

  void run(const Choice& choice) {
    std::vector<int> layers;
    for (std::size_t layer = 0; layer < n_layers_; ++layer) {
      if (choice[layer]) layers.push_back(static_cast<int>(layer));
    }
    tried_.insert(choice);
    trials_.push_back({choice, (*score_)(layers)});
  }

  bool is_new(const Choice& choice) const {
    const auto n = std::count(choice.begin(), choice.end(), true);
    return n > 0 && n < static_cast<std::ptrdiff_t>(n_layers_) && !tried_.contains(choice);
  }

  // Uniform in [0, 1). Computed by hand, since std::uniform_real_distribution differs between
  // standard libraries.
  double uniform() { return static_cast<double>(random_() >> 11U) * 0x1p-53; }

  // Writes the best trial's subset with one layer flipped, drawn from the untried ones. Returns
  // false if all are tried.
  bool neighbour(Choice& out) {
    std::vector<std::size_t> layers(n_layers_);
    std::iota(layers.begin(), layers.end(), 0);
    for (std::size_t n = n_layers_; n > 0; --n) {
      const auto at = static_cast<std::size_t>(uniform() * static_cast<double>(n));
      out = trials_.front().choice;
      out[layers[at]] = !out[layers[at]];
      if (is_new(out)) return true;
      layers[at] = layers[n - 1];
    }
    return false;
  }

  // By layer: the share of trials in [first, last) that skip it, with two more trials added. One of
  // these skips the layer, the other does not, so no share is 0 or 1.
  std::vector<double> shares(std::size_t first, std::size_t last) const {
    std::vector<double> share(n_layers_);
    for (std::size_t layer = 0; layer < n_layers_; ++layer) {
      double n_out = 1;
      for (std::size_t trial = first; trial < last; ++trial) {
        n_out += trials_[trial].choice[layer] ? 1 : 0;
      }
      share[layer] = n_out / (static_cast<double>(last - first) + 2);
    }
    return share;
  }

  // Draws candidates by the shares of the good trials, and writes the one with the largest ratio of
  // probabilities, good over others. Returns false if no draw was untried.
  bool promising(Choice& out) {
    const std::size_t n_good = std::max<std::size_t>(trials_.size() / kGoodOneIn, 1);
    const std::vector<double> good = shares(0, n_good);
    const std::vector<double> others = shares(n_good, trials_.size());
    double best = 0;
    int n_candidates = 0;
    for (int draw = 0; draw < kMaxDraws && n_candidates < kCandidates; ++draw) {
      Choice choice(n_layers_);
      double promise = 0;  // the logarithm of that ratio
      for (std::size_t layer = 0; layer < n_layers_; ++layer) {
        choice[layer] = uniform() < good[layer];
        promise += choice[layer] ? std::log(good[layer] / others[layer])
                                 : std::log((1 - good[layer]) / (1 - others[layer]));
      }
      if (!is_new(choice)) continue;
      if (n_candidates++ > 0 && promise <= best) continue;
      best = promise;
      out = std::move(choice);
    }
    return n_candidates > 0;
  }

  std::size_t n_layers_;
  std::mt19937_64 random_;
  const std::function<double(const std::vector<int>&)>* score_;
  std::vector<Trial> trials_;  // try_next() sorts them, the highest score first
  std::set<Choice> tried_;
};

}  // namespace

void search_subsets(int n_layers, int n_trials, std::uint64_t seed,
                    const std::function<double(const std::vector<int>&)>& score) {
  Search search(n_layers, seed, score);
  const auto most = static_cast<std::size_t>(n_trials);
  constexpr int kCountable = 30;  // numbers of layers whose subsets an int can count
  if (n_layers <= kCountable && (std::int64_t{1} << n_layers) - 2 <= n_trials) {
    search.try_all();
    return;
  }
  for (int layer = 0; layer < n_layers && search.n_trials() < most; ++layer) {
    search.try_single(static_cast<std::size_t>(layer));
  }
  while (search.n_trials() < most && search.try_next()) {
  }
}

}  // namespace outrider
