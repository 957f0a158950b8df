// SPDX-License-Identifier: Apache-2.0
// Random operations on sequences of one small cache, compared with a model: maps from positions to
// numbers, copied at every fork.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "model/cache/kv_sequence.h"
#include "outrider/error.h"
#include "tests/support/marked_slots.h"

namespace outrider {
namespace {

struct Node {
  float number;
  int parent;
};

// The expected contents. (n_groups) of each: the kept positions that remain, and the dropped pages.
struct Expected {
  std::vector<std::map<int, float>> there;
  std::vector<std::set<int>> gone;
  int n_kept = 0;
  std::vector<Node> pending;

  void drop_unread(const std::vector<int>& windows) {
    for (std::size_t group = 0; group < windows.size(); ++group) {
      if (windows[group] == 0) continue;
      // Drops each page with no position that is read from n_kept - kRewindTokens on.
      for (int page = 0; (page + 1) * kPageTokens <= n_kept - kRewindTokens - windows[group] + 1;
           ++page) {
        gone[group].insert(page);
        for (int i = 0; i < kPageTokens; ++i) there[group].erase(page * kPageTokens + i);
      }
    }
  }
  bool can_stand_at(int n, const std::vector<int>& windows) const {
    for (std::size_t group = 0; group < windows.size(); ++group) {
      if (gone[group].contains(n / kPageTokens)) return false;  // the next token has no place
      if (windows[group] == 0) continue;
      for (int at = std::max(n - windows[group] + 1, 0); at < n; ++at) {
        if (!there[group].contains(at)) return false;
      }
    }
    return true;
  }
};

struct Pair {
  std::unique_ptr<Sequence> sequence;
  Expected expected;
  KvSequence& real() const { return static_cast<KvSequence&>(*sequence); }
};

class RandomSequences {
 public:
  RandomSequences(unsigned seed, const std::vector<LayerCache>& layers, std::size_t max_bytes)
      : random_(seed), cache_(std::make_shared<KvCache>(layers, kernels::KvKind::f32, max_bytes)) {
    for (const CacheGroup& group : cache_->groups()) windows_.push_back(group.window);
    open();
  }

  void run(int n_steps) {
    for (int i = 0; i < n_steps && !::testing::Test::HasFatalFailure(); ++i) {
      step();
      check();
    }
    pairs_.clear();
    EXPECT_EQ(cache_->pool().used_bytes(), 0u);
  }
  int n_refused() const { return n_refused_; }
  int n_restarted() const { return n_restarted_; }
  int n_rewound() const { return n_rewound_; }
  int n_bare() const { return max_bare_; }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Pair& any() { return pairs_[static_cast<std::size_t>(below(static_cast<int>(pairs_.size())))]; }
  void open() {
    Pair pair;
    pair.sequence = std::make_unique<KvSequence>(cache_);
    pair.expected.there.resize(windows_.size());
    pair.expected.gone.resize(windows_.size());
    pairs_.push_back(std::move(pair));
  }

  void step() {
    switch (below(10)) {
      case 0:
      case 1:
        append(any(), 1 + below(12), true);
        break;
      case 2:
        append(any(), 1 + below(150), false);
        break;
      case 3:
        append_to_all();
        break;
      case 4:
      case 5:
      case 6:
        keep(any());
        break;
      case 7:
        rewind(any());
        break;
      case 8:
        fork(any());
        break;
      case 9:
        if (below(4) > 0) break;  // rarely, so that sequences grow
        pairs_.erase(pairs_.begin() + below(static_cast<int>(pairs_.size())));
        if (pairs_.empty()) open();
        break;
    }
    max_bare_ = std::max(max_bare_, cache_->pool().n_bare());
  }

  void append(Pair& pair, int n, bool tree) {
    if (!reserves({{&pair.real(), n}})) return;
    add_nodes(pair, n, tree);
  }
  void append_to_all() {
    std::vector<KvSequence::Reservation> blocks;
    for (const Pair& pair : pairs_) blocks.push_back({&pair.real(), 1 + below(20)});
    if (!reserves(blocks)) return;
    for (std::size_t i = 0; i < pairs_.size(); ++i) add_nodes(pairs_[i], blocks[i].n_new, true);
  }
  // A refusal is right only if the requested pages do not fit: at most those of the slots and one
  // more for a copy.
  bool reserves(const std::vector<KvSequence::Reservation>& blocks) {
    const std::size_t used = cache_->pool().used_bytes();
    try {
      KvSequence::ensure_slots(blocks);
    } catch (const Error&) {
      ++n_refused_;
      EXPECT_EQ(cache_->pool().used_bytes(), used);
      int n_max = 0;
      for (const auto& [sequence, n_new] : blocks) n_max += n_new / kPageTokens + 2;
      const std::vector<int> most(windows_.size(), n_max);
      EXPECT_FALSE(cache_->pool().fits(most));
      return false;
    }
    return true;
  }
  void add_nodes(Pair& pair, int n, bool tree) {
    for (int i = 0; i < n; ++i) {
      const int n_pending = pair.real().n_pending();
      const int parent = tree ? below(n_pending + 1) - 1 : n_pending - 1;
      next_number_ = next_number_ < 8000 ? next_number_ + 1 : 1;
      pair.real().append(parent);
      test::mark(pair.real(), pair.real().n_kept() + n_pending, next_number_);
      pair.expected.pending.push_back({next_number_, parent});
    }
  }

  void keep(Pair& pair) {
    Expected& expected = pair.expected;
    std::vector<int> path;
    // Prefers late nodes, so that sequences grow beyond their windows.
    int node = static_cast<int>(expected.pending.size()) - 1;
    if (node >= 0 && below(3) == 0) node = below(node + 1);
    if (below(20) == 0) node = -1;
    for (; node >= 0; node = expected.pending[static_cast<std::size_t>(node)].parent) {
      path.insert(path.begin(), node);
    }
    try {
      pair.real().keep(path);
    } catch (const Error&) {
      ++n_refused_;
      EXPECT_FALSE(cache_->pool().fits(std::vector<int>(windows_.size(), 3)));
      return;
    }
    for (const int each : path) {
      for (auto& group : expected.there) {
        group[expected.n_kept] = expected.pending[static_cast<std::size_t>(each)].number;
      }
      ++expected.n_kept;
    }
    expected.pending.clear();
    expected.drop_unread(windows_);
  }

  void rewind(Pair& pair) {
    Expected& expected = pair.expected;
    const int n_back = below(3) == 0 ? below(300) : below(40);
    const int n = std::max(expected.n_kept - n_back, 0);
    const int stands = expected.can_stand_at(n, windows_) ? n : 0;
    n_restarted_ += stands < n ? 1 : 0;
    n_rewound_ += stands > 0 && stands < expected.n_kept ? 1 : 0;
    EXPECT_EQ(pair.sequence->rewind(n), stands);
    for (auto& group : expected.there) group.erase(group.lower_bound(stands), group.end());
    expected.n_kept = stands;
    if (stands == 0) expected.gone.assign(windows_.size(), {});
    expected.pending.clear();
    expected.drop_unread(windows_);
  }

  void fork(const Pair& pair) {
    if (pairs_.size() >= 5) return;
    Pair copy;
    copy.sequence = pair.sequence->fork();
    copy.expected = pair.expected;
    copy.expected.pending.clear();
    pairs_.push_back(std::move(copy));
  }

  void check() {
    const std::span<const CacheGroup> groups = cache_->groups();
    std::set<const void*> pages;
    std::size_t used_bytes = 0;
    for (const Pair& pair : pairs_) {
      for (std::size_t group = 0; group < groups.size(); ++group) {
        for (const void* page : test::chunks(pair.real(), groups[group].layers.front())) {
          if (page != nullptr && pages.insert(page).second) {
            used_bytes += groups[group].page_bytes();
          }
        }
        check_group(pair, group);
      }
    }
    ASSERT_EQ(cache_->pool().used_bytes(), used_bytes);
    ASSERT_LE(cache_->pool().held_bytes(), cache_->pool().max_bytes());
  }

  void check_group(const Pair& pair, std::size_t group) {
    const KvSequence& sequence = pair.real();
    const Expected& expected = pair.expected;
    ASSERT_EQ(sequence.n_kept(), expected.n_kept);
    ASSERT_EQ(sequence.n_pending(), static_cast<int>(expected.pending.size()));
    for (const int layer : cache_->groups()[group].layers) {
      const std::vector<const void*> chunks = test::chunks(sequence, layer);
      const int n_slots = expected.n_kept + static_cast<int>(expected.pending.size());
      ASSERT_GE(static_cast<int>(chunks.size()) * kPageTokens, n_slots);
      const std::map<int, float>& there = expected.there[group];
      for (const auto& [position, number] : there) {
        ASSERT_EQ(test::number_at(sequence, position, layer), number);
      }
      for (std::size_t page = 0; page < chunks.size(); ++page) {
        const int first = static_cast<int>(page) * kPageTokens;
        if (first + kPageTokens > expected.n_kept) break;
        ASSERT_EQ(chunks[page] != nullptr, there.contains(first));
      }
      // Checks some nodes of a long chain.
      const std::size_t stride = 1 + expected.pending.size() / 16;
      for (std::size_t node = 0; node < expected.pending.size(); node += stride) {
        check_path(pair, static_cast<int>(node), layer);
      }
    }
  }

  // A node reads the kept tokens that remain, its ancestors and itself.
  void check_path(const Pair& pair, int node, int layer) {
    const Expected& expected = pair.expected;
    std::vector<float> numbers;  // of the node's path
    for (int at = node; at >= 0; at = expected.pending[static_cast<std::size_t>(at)].parent) {
      numbers.insert(numbers.begin(), expected.pending[static_cast<std::size_t>(at)].number);
    }
    const std::vector<int> slots = test::slots_read(pair.real(), node);
    ASSERT_EQ(slots.size(), static_cast<std::size_t>(expected.n_kept) + numbers.size());
    for (int at = 0; at < expected.n_kept; ++at) ASSERT_EQ(slots[static_cast<std::size_t>(at)], at);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const int slot = slots[static_cast<std::size_t>(expected.n_kept) + i];
      ASSERT_EQ(test::number_at(pair.real(), slot, layer), numbers[i]);
    }
  }

  std::mt19937 random_;
  std::shared_ptr<KvCache> cache_;
  std::vector<int> windows_;  // by group
  std::vector<Pair> pairs_;
  float next_number_ = 0;
  int n_refused_ = 0;
  int n_restarted_ = 0;
  int n_rewound_ = 0;
  int max_bare_ = 0;
};

TEST(RandomSequences, HoldWhatMapsOfTheirTokensHold) {
  constexpr LayerCache kFull{.n_heads = 1, .head_dim = 2};
  const std::vector<std::vector<LayerCache>> models = {
      {kFull, kFull},
      {{.n_heads = 1, .head_dim = 2, .window = 1}, kFull},
      {kFull,
       {.n_heads = 2, .head_dim = 3, .window = 90},
       kFull,
       {.n_heads = 2, .head_dim = 3, .window = 90},
       {.n_heads = 1, .head_dim = 2, .window = 200}},
      {{.n_heads = 1, .head_dim = 1, .window = 64}}};
  int n_refused = 0;
  int n_restarted = 0;
  int n_rewound = 0;
  int n_bare = 0;
  unsigned seed = 0;
  for (const std::vector<LayerCache>& layers : models) {
    const std::size_t least = KvCache(layers, kernels::KvKind::f32).token_bytes() * kPageTokens;
    for (const std::size_t max_bytes : {6 * least + 100, 14 * least, PagePool::kUnbounded}) {
      SCOPED_TRACE(seed);
      RandomSequences sequences(seed++, layers, max_bytes);
      sequences.run(800);
      if (HasFatalFailure()) return;
      if (max_bytes == PagePool::kUnbounded) {
        EXPECT_EQ(sequences.n_refused(), 0);
      }
      n_refused += sequences.n_refused();
      n_restarted += sequences.n_restarted();
      n_rewound += sequences.n_rewound();
      n_bare += sequences.n_bare();
    }
  }
  // Every operation happened often.
  EXPECT_GT(n_refused, 100);
  EXPECT_GT(n_restarted, 20);
  EXPECT_GT(n_rewound, 200);
  EXPECT_GT(n_bare, 3);
}

}  // namespace
}  // namespace outrider
