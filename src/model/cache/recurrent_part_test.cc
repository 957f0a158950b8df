// SPDX-License-Identifier: Apache-2.0
// Sequences with recurrent layers under random reservations, keeps, rewinds and forks, with and
// without enough memory, compared with a list of each one's kept tokens.
#include "model/cache/recurrent_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <random>
#include <vector>

#include "model/cache/kv_sequence.h"
#include "model/prefill.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// Two convolutions over four tokens of three channels, around an attention layer.
constexpr int kWidth = 3;
constexpr int kWindow = 3;  // tokens held by a state

std::vector<LayerCache> layers() {
  const RecurrentShape shape{.recurrence = Recurrence::convolution,
                             .state_width = kWindow * kWidth,
                             .input_width = kWidth};
  return {{.recurrent = shape}, {.n_heads = 1, .head_dim = 4}, {.recurrent = shape}};
}

// A token's input in one layer and channel.
float input_of(int token, int layer, int channel) {
  return static_cast<float>(token * 16 + layer * 4 + channel);
}

struct Kept {
  std::unique_ptr<KvSequence> sequence;
  std::vector<int> tokens;  // the kept ones
};

void expect_state(const Kept& kept) {
  ASSERT_EQ(kept.sequence->n_kept(), static_cast<int>(kept.tokens.size()));
  if (kept.tokens.empty()) return;
  for (const int layer : {0, 2}) {
    const float* state = kept.sequence->state(layer);
    for (int place = 0; place < kWindow; ++place) {
      const int at = static_cast<int>(kept.tokens.size()) - kWindow + place;
      for (int channel = 0; channel < kWidth; ++channel) {
        const float expected =
            at < 0 ? 0.0F : input_of(kept.tokens[static_cast<std::size_t>(at)], layer, channel);
        ASSERT_EQ(state[place * kWidth + channel], expected);
      }
    }
  }
}

// Adds random trees to sequences and keeps a random path of each.
class RandomTexts {
 public:
  RandomTexts(unsigned seed, std::size_t max_bytes)
      : random_(seed),
        cache_(std::make_shared<KvCache>(layers(), kernels::KvKind::f32, max_bytes)) {
    texts_.push_back({std::make_unique<KvSequence>(cache_), {}});
  }

  void step() {
    const std::size_t at = random_() % texts_.size();
    switch (random_() % 8) {
      case 0:
        return rewind(texts_[at]);
      case 1:
        return fork(at);
      case 2:
        if (texts_.size() > 1) texts_.erase(texts_.begin() + static_cast<std::ptrdiff_t>(at));
        return;
      default:
        return grow(texts_[at]);
    }
  }
  void expect_states() const {
    for (const Kept& kept : texts_) expect_state(kept);
  }
  // All memory is free again.
  void end() {
    texts_.clear();
    EXPECT_EQ(cache_->pool().n_used(), 0);
  }

  int n_refused = 0;
  int n_grown = 0;

 private:
  void grow(Kept& kept) {
    KvSequence& sequence = *kept.sequence;
    const int n_new = random_() % 4 == 0 ? 100 : 1 + static_cast<int>(random_() % 12);
    const bool is_chain = n_new == 100 || random_() % 2 == 0;
    const SequenceGrowth growth{&sequence, n_new};
    const bool fits = KvSequence::fit(*cache_, {&growth, 1});
    try {
      sequence.ensure_slots(n_new);
    } catch (const Error&) {
      EXPECT_FALSE(fits);
      ++n_refused;
      return expect_state(kept);
    }
    ++n_grown;
    std::vector<int> tokens;
    for (int i = 0; i < n_new; ++i) {
      const int parent = is_chain ? i - 1 : static_cast<int>(random_() % (i + 1)) - 1;
      sequence.append(parent);
      tokens.push_back(next_token_++ % 10000);
      for (const int layer : {0, 2}) {
        for (int channel = 0; channel < kWidth; ++channel) {
          sequence.inputs(i, layer)[channel] = input_of(tokens.back(), layer, channel);
        }
      }
    }
    // A path to a random node, backwards, or none.
    std::vector<int> path;
    for (int node = static_cast<int>(random_() % (n_new + 1)) - 1; node >= 0;
         node = sequence.parent(node)) {
      path.insert(path.begin(), node);
    }
    // If fit() says yes, keep() works too: fit() counts the copy of a state shared with a fork.
    try {
      sequence.keep(path);
    } catch (const Error&) {
      EXPECT_FALSE(fits);
      throw;
    }
    for (const int node : path) kept.tokens.push_back(tokens[static_cast<std::size_t>(node)]);
  }

  void rewind(Kept& kept) {
    const int n_kept = kept.sequence->n_kept();
    const int wanted = n_kept - static_cast<int>(random_() % (n_kept + 1));
    const int left = kept.sequence->rewind(wanted);
    EXPECT_LE(left, wanted);
    EXPECT_TRUE(left == n_kept || left % kPageTokens == 0);
    kept.tokens.resize(static_cast<std::size_t>(left));
  }

  void fork(std::size_t at) {
    if (texts_.size() == 4) return;
    auto fork = texts_[at].sequence->fork();
    std::vector<int> tokens = texts_[at].tokens;
    texts_.push_back(
        {std::unique_ptr<KvSequence>(static_cast<KvSequence*>(fork.release())), std::move(tokens)});
  }

  std::mt19937 random_;
  std::shared_ptr<KvCache> cache_;
  std::vector<Kept> texts_;
  int next_token_ = 1;
};

TEST(RecurrentPart, KeepsTheLastInputsOfWhatIsKept) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    RandomTexts texts(seed, PagePool::kUnbounded);
    for (int i = 0; i < 300; ++i) {
      texts.step();
      texts.expect_states();
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(texts.n_refused, 0);
    texts.end();
  }
}

TEST(RecurrentPart, KeepsThemWhereMemoryIsShort) {
  int n_refused = 0;
  int n_grown = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const KvCache cache(layers(), kernels::KvKind::f32);
    RandomTexts texts(seed, 8 * kPageTokens * cache.token_bytes() + 4 * cache.state_bytes());
    for (int i = 0; i < 300; ++i) {
      try {
        texts.step();
      } catch (const Error&) {
        ++n_refused;  // from keep(): reserve() does not include the copy of a forked state
        break;
      }
      texts.expect_states();
      if (::testing::Test::HasFailure()) return;
    }
    n_refused += texts.n_refused;
    n_grown += texts.n_grown;
    texts.end();
  }
  EXPECT_GT(n_refused, 0);
  EXPECT_GT(n_grown, n_refused);
}

// Inputs of pending nodes need memory for one pass, not for a long text run in several.
TEST(RecurrentPart, RoomForALongTextIsRoomForItsPasses) {
  constexpr int kTokens = 2000;
  const KvCache cache(layers(), kernels::KvKind::f32);
  const std::size_t most = pages_of(kTokens) * kPageTokens * cache.token_bytes() +
                           cache.state_bytes() +
                           (2 * kPrefillRows + kPageTokens) * cache.input_bytes();
  for (const std::size_t n_bytes : {most, most - 1}) {
    const auto bounded = std::make_shared<KvCache>(layers(), kernels::KvKind::f32, n_bytes);
    KvSequence sequence(bounded);
    const SequenceGrowth growth{&sequence, kTokens};
    EXPECT_EQ(KvSequence::fit(*bounded, {&growth, 1}), n_bytes == most);
    if (n_bytes < most) continue;
    while (sequence.n_kept() < kTokens) {
      const int n_rows = std::min(kPrefillRows, kTokens - sequence.n_kept());
      sequence.ensure_slots(n_rows);
      std::vector<int> path;
      for (int i = 0; i < n_rows; ++i) {
        sequence.append(i - 1);
        path.push_back(i);
      }
      sequence.keep(path);
    }
  }
}

// After a rewind the state is shared with a snapshot: fit() counts a copy, while reserve() takes
// the snapshot's page.
TEST(RecurrentPart, RoomBehindARewindingMayBeMoreThanIsSaid) {
  const KvCache cache(layers(), kernels::KvKind::f32);
  const auto bounded = std::make_shared<KvCache>(
      layers(), kernels::KvKind::f32,
      3 * kPageTokens * cache.token_bytes() + 2 * cache.state_bytes() + 72 * cache.input_bytes());
  KvSequence sequence(bounded);
  sequence.ensure_slots(70);
  std::vector<int> path;
  for (int i = 0; i < 70; ++i) {
    sequence.append(i - 1);
    path.push_back(i);
  }
  sequence.keep(path);
  EXPECT_EQ(sequence.rewind(69), 64);
  KvSequence other(bounded);
  other.ensure_slots(64);
  const SequenceGrowth growth{&sequence, 4};
  EXPECT_FALSE(KvSequence::fit(*bounded, {&growth, 1}));
  sequence.ensure_slots(4);
  EXPECT_TRUE(KvSequence::fit(*bounded, {&growth, 1}));
  EXPECT_EQ(sequence.rewind(63), 0);  // the snapshot was dropped
}

TEST(RecurrentPart, LayersOfOtherShapesAreRefused) {
  std::vector<LayerCache> other = layers();
  other[2].recurrent.state_width = 2 * kWidth;
  EXPECT_THROW(make_cache_groups(other, kernels::KvKind::f32), Error);
  other = layers();
  other[0].n_heads = 1;
  EXPECT_THROW(make_cache_groups(other, kernels::KvKind::f32), Error);
  other = layers();
  for (LayerCache& layer : other) layer.recurrent.state_width += layer.is_recurrent() ? 1 : 0;
  EXPECT_THROW(make_cache_groups(other, kernels::KvKind::f32), Error);
  const std::vector<CacheGroup> groups = make_cache_groups(layers(), kernels::KvKind::f32);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].kind, CacheKind::full);
  EXPECT_EQ(groups[1].kind, CacheKind::state);
  EXPECT_EQ(groups[1].layers, (std::vector<int>{0, 2}));
  EXPECT_EQ(groups[1].page_bytes(), 2U * 64);
  EXPECT_EQ(groups[2].kind, CacheKind::inputs);
  EXPECT_EQ(groups[2].page_bytes(), 2U * 128);
}

}  // namespace
}  // namespace outrider
