#include "model/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/kv_layout.h"

namespace outrider {
namespace {

constexpr KvShape kShape{.n_layers = 2, .n_heads = 1, .head_dim = 3, .kind = kernels::KvKind::f32};

TEST(PagePool, PagesLieApartInWholeCacheLines) {
  // Of 98,304 and of 56 million bytes: many to what is asked for at once, and more than that.
  for (const int n_layers : {3, 1700}) {
    PagePool pool(
        {.n_layers = n_layers, .n_heads = 2, .head_dim = 21, .kind = kernels::KvKind::f32});
    std::vector<std::byte*> pages;
    const int n_pages = n_layers == 3 ? 500 : 3;
    for (int i = 0; i < n_pages; ++i) {
      EXPECT_EQ(pool.n_pages(), i);
      pages.push_back(pool.bytes(pool.acquire()));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages.back()) % 64, 0u);
      // The memory checkers see whether it is there.
      pages.back()[0] = pages.back()[pool.shape().page_bytes() - 1] = std::byte{1};
    }
    std::sort(pages.begin(), pages.end());
    for (std::size_t i = 1; i < pages.size(); ++i) {
      ASSERT_GE(static_cast<std::size_t>(pages[i] - pages[i - 1]), pool.shape().page_bytes());
    }
  }
}

TEST(KvShape, BlocksAreWholeCacheLines) {
  for (const auto kind : {kernels::KvKind::f32, kernels::KvKind::bf16, kernels::KvKind::int8}) {
    for (int head_dim = 1; head_dim <= 130; ++head_dim) {
      const KvShape shape{.n_layers = 1, .n_heads = 1, .head_dim = head_dim, .kind = kind};
      EXPECT_EQ(shape.block_bytes() % 64, 0u) << name_of(kind) << ' ' << head_dim;
    }
  }
}

constexpr kernels::KvLayout kLayout{kShape.kind, kShape.head_dim};

// Marks a slot's key and value in every layer with a number of its own.
void mark(KvSequence& sequence, int slot, float number) {
  for (int layer = 0; layer < kShape.n_layers; ++layer) {
    const float layered = number + 1000.0F * static_cast<float>(layer);
    std::byte* page = sequence.layer(slot, layer);
    for (int dim = 0; dim < kShape.head_dim; ++dim) {
      const float key = layered + 0.25F * static_cast<float>(dim);
      const float value = -key;
      const int token = slot % kPageTokens;
      std::memcpy(page + kShape.keys_at(0) + kLayout.key_at(token, dim), &key, sizeof key);
      std::memcpy(page + kShape.values_at(0) + kLayout.value_at(token, dim), &value, sizeof value);
    }
  }
}

// The number that a slot of a sequence is marked with in one layer, its page standing there; fails
// where its key or value is not whole.
float number_at(const void* page, int slot, int layer) {
  const auto* const begin = static_cast<const std::byte*>(page);
  const int token = slot % kPageTokens;
  float first = 0;
  for (int dim = 0; dim < kShape.head_dim; ++dim) {
    float key;
    float value;
    std::memcpy(&key, begin + kShape.keys_at(0) + kLayout.key_at(token, dim), sizeof key);
    std::memcpy(&value, begin + kShape.values_at(0) + kLayout.value_at(token, dim), sizeof value);
    if (dim == 0) first = key;
    EXPECT_EQ(key, first + 0.25F * static_cast<float>(dim));
    EXPECT_EQ(value, -key);
  }
  return first - 1000.0F * static_cast<float>(layer);
}

// The numbers of the keys that a node attends to, in order.
std::vector<float> walk(const KvSequence& sequence, int node, int layer) {
  const int n = sequence.n_kept() + sequence.depth(node) + 1;
  const int n_in_place = sequence.n_in_place(node);
  std::vector<int> slots;
  for (int slot = 0; slot < n_in_place; ++slot) slots.push_back(slot);
  std::vector<int> others(static_cast<std::size_t>(n - n_in_place));
  sequence.others(node, others);
  slots.insert(slots.end(), others.begin(), others.end());
  std::vector<const void*> pages(sequence.n_pages());
  sequence.chunks(layer, pages);
  std::vector<float> numbers;
  for (const int slot : slots) {
    numbers.push_back(number_at(pages[static_cast<std::size_t>(slot / kPageTokens)], slot, layer));
  }
  return numbers;
}

void add(KvSequence& sequence, const std::vector<int>& parents, float first) {
  sequence.reserve(static_cast<int>(parents.size()));
  for (const int parent : parents) {
    sequence.append(parent);
    mark(sequence, sequence.n_kept() + sequence.n_pending() - 1, first++);
  }
}

void add_kept(KvSequence& sequence, int n, float first) {
  for (int i = 0; i < n; ++i) {
    add(sequence, {-1}, first + static_cast<float>(i));
    sequence.keep(std::vector<int>{0});
  }
}

std::vector<float> kept(const KvSequence& sequence, int layer) {
  std::vector<float> numbers;
  for (int slot = 0; slot < sequence.n_kept(); ++slot) {
    numbers.push_back(number_at(sequence.layer(slot, layer), slot, layer));
  }
  return numbers;
}

std::vector<float> range(float first, int n) {
  std::vector<float> numbers;
  for (int i = 0; i < n; ++i) numbers.push_back(first + static_cast<float>(i));
  return numbers;
}

TEST(KvSequence, GathersAncestorsInOrderOfPosition) {
  KvSequence sequence(std::make_shared<PagePool>(kShape));
  add_kept(sequence, kPageTokens - 2, 0);
  add(sequence, {-1, -1, 1, 0, 2, 4}, 100);  // over the border of a page
  EXPECT_EQ(sequence.depth(5), 3);
  for (const int node : {0, 3, 5}) {
    EXPECT_EQ(sequence.n_in_place(node), kPageTokens - 2 + (node == 5 ? 0 : 1)) << node;
  }
  for (int layer = 0; layer < 2; ++layer) {
    std::vector<float> expected = range(0, kPageTokens - 2);
    expected.insert(expected.end(), {101, 102, 104, 105});
    EXPECT_EQ(walk(sequence, 5, layer), expected);
    expected = range(0, kPageTokens - 2);
    expected.insert(expected.end(), {100, 103});
    EXPECT_EQ(walk(sequence, 3, layer), expected);
  }
}

TEST(KvSequence, KeepMovesThePathInOrder) {
  const auto pool = std::make_shared<PagePool>(kShape);
  KvSequence sequence(pool);
  add_kept(sequence, kPageTokens - 2, 0);
  add(sequence, {-1, -1, 1, 0, 2, 4}, 100);
  sequence.keep(std::vector<int>{1, 2, 4, 5});
  std::vector<float> expected = range(0, kPageTokens - 2);
  expected.insert(expected.end(), {101, 102, 104, 105});
  EXPECT_EQ(kept(sequence, 0), expected);
  EXPECT_EQ(kept(sequence, 1), expected);
  EXPECT_EQ(sequence.n_pending(), 0);
  EXPECT_EQ(pool->n_pages() - pool->n_free(), 2);
  add(sequence, {-1, 0}, 200);
  sequence.keep({});
  EXPECT_EQ(kept(sequence, 0), expected);
}

TEST(KvSequence, ForksShareUntilOneWrites) {
  const auto pool = std::make_shared<PagePool>(kShape);
  auto sequence = std::make_unique<KvSequence>(pool);
  add_kept(*sequence, 3 * kPageTokens - 8, 0);  // three pages, the last with room for 8
  EXPECT_EQ(pool->n_pages(), 3);
  add(*sequence, {-1, -1, 1}, 100);
  auto fork = sequence->fork();
  auto& copy = dynamic_cast<KvSequence&>(*fork);
  EXPECT_EQ(pool->n_pages() - pool->n_free(), 3);  // nothing copied yet
  EXPECT_EQ(copy.n_pending(), 0);

  // The original compacts its tree into a page that the fork still reads.
  sequence->keep(std::vector<int>{1, 2});
  EXPECT_EQ(pool->n_pages() - pool->n_free(), 4);
  EXPECT_EQ(kept(copy, 0), range(0, 3 * kPageTokens - 8));
  add_kept(copy, 12, 300);
  std::vector<float> expected = range(0, 3 * kPageTokens - 8);
  expected.insert(expected.end(), {101, 102});
  EXPECT_EQ(kept(*sequence, 0), expected);
  EXPECT_EQ(kept(*sequence, 1), expected);
  std::vector<float> copied = range(0, 3 * kPageTokens - 8);
  for (const float number : range(300, 12)) copied.push_back(number);
  EXPECT_EQ(kept(copy, 0), copied);

  // Truncated into shared pages and written again: only its own copy changes.
  copy.truncate(10);
  add_kept(copy, 3, 400);
  EXPECT_EQ(kept(*sequence, 0), expected);
  sequence.reset();
  std::vector<float> rest = range(0, 10);
  rest.insert(rest.end(), {400, 401, 402});
  EXPECT_EQ(kept(copy, 0), rest);
  fork.reset();
  EXPECT_EQ(pool->n_free(), pool->n_pages());
}

TEST(KvSequence, HeldPagesStayUntilItEnds) {
  const auto pool = std::make_shared<PagePool>(kShape);
  {
    KvSequence sequence(pool);
    sequence.hold(3 * kPageTokens);
    EXPECT_TRUE(sequence.empty());
    EXPECT_EQ(pool->n_pages(), 3);
    add_kept(sequence, 2 * kPageTokens, 0);
    add(sequence, {-1, 0, 1}, 100);
    sequence.keep({});
    sequence.truncate(1);
    EXPECT_EQ(pool->n_pages(), 3);
    EXPECT_EQ(pool->n_free(), 0);
    EXPECT_EQ(sequence.fork()->n_kept(), 1);
    add_kept(sequence, 3 * kPageTokens + 1, 7);  // beyond what is held
    EXPECT_EQ(pool->n_pages(), 4);
    sequence.truncate(0);
    EXPECT_EQ(pool->n_free(), 1);
  }
  EXPECT_EQ(pool->n_free(), 4);
}

// Once warm, rounds of drafting, keeping and forking take no new memory.
TEST(KvSequence, PagesAreUsedAgain) {
  const auto pool = std::make_shared<PagePool>(kShape);
  int n_pages_when_warm = 0;
  constexpr int kRounds = kPageTokens / 2;  // of three tokens each: a page and a half
  for (int request = 0; request < 20; ++request) {
    KvSequence sequence(pool);
    for (int round = 0; round < kRounds; ++round) {
      add(sequence, {-1, -1, 1, 2, 0}, 0);
      const auto fork = sequence.fork();
      sequence.keep(std::vector<int>{1, 2, 3});
    }
    EXPECT_EQ(sequence.n_kept(), 3 * kRounds);
    if (request == 0) n_pages_when_warm = pool->n_pages();
  }
  EXPECT_EQ(pool->n_pages(), n_pages_when_warm);
}

}  // namespace
}  // namespace outrider
