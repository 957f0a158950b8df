#include "model/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace outrider {
namespace {

constexpr KvShape kShape{.n_layers = 2, .n_heads = 1, .head_dim = 3, .kind = kernels::KvKind::f32};

TEST(PagePool, PagesLieApartInWholeCacheLines) {
  // Of 16,128 and of 9 million bytes: many to what is asked for at once, and more than that.
  for (const int n_layers : {3, 1700}) {
    PagePool pool(
        {.n_layers = n_layers, .n_heads = 2, .head_dim = 21, .kind = kernels::KvKind::f32});
    std::vector<std::byte*> pages;
    const int n_pages = n_layers == 3 ? 3000 : 4;
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

// Marks a slot's key and value in every layer with a number of its own.
void mark(KvSequence& sequence, int slot, float number) {
  for (int layer = 0; layer < kShape.n_layers; ++layer) {
    const float layered = number + 1000.0F * static_cast<float>(layer);
    const float key[3] = {layered, layered + 0.25F, layered + 0.5F};
    const float value[3] = {-layered, -layered - 0.25F, -layered - 0.5F};
    std::memcpy(sequence.key(slot, layer), key, sizeof key);
    std::memcpy(sequence.value(slot, layer), value, sizeof value);
  }
}

// The numbers of the keys that a node attends to, in order; fails where a value is not its key's.
std::vector<float> walk(const KvSequence& sequence, int node, int layer) {
  const auto n = static_cast<std::size_t>(sequence.n_kept() + sequence.depth(node) + 1);
  std::vector<const void*> keys(n);
  std::vector<const void*> values(n);
  sequence.gather(node, layer, 0, keys, values);
  std::vector<float> numbers;
  for (std::size_t i = 0; i < n; ++i) {
    const auto* key = static_cast<const float*>(keys[i]);
    const auto* value = static_cast<const float*>(values[i]);
    for (int j = 0; j < 3; ++j) EXPECT_EQ(key[j], -value[j]);
    EXPECT_EQ(key[2], key[0] + 0.5F);
    numbers.push_back(key[0] - 1000.0F * static_cast<float>(layer));
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
    float number;
    std::memcpy(&number, sequence.key(slot, layer), sizeof number);
    numbers.push_back(number - 1000.0F * static_cast<float>(layer));
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
  add_kept(sequence, 14, 0);
  add(sequence, {-1, -1, 1, 0, 2, 4}, 100);  // over the border of a page
  EXPECT_EQ(sequence.depth(5), 3);
  for (int layer = 0; layer < 2; ++layer) {
    std::vector<float> expected = range(0, 14);
    expected.insert(expected.end(), {101, 102, 104, 105});
    EXPECT_EQ(walk(sequence, 5, layer), expected);
    expected = range(0, 14);
    expected.insert(expected.end(), {100, 103});
    EXPECT_EQ(walk(sequence, 3, layer), expected);
  }
}

TEST(KvSequence, KeepMovesThePathInOrder) {
  const auto pool = std::make_shared<PagePool>(kShape);
  KvSequence sequence(pool);
  add_kept(sequence, 14, 0);
  add(sequence, {-1, -1, 1, 0, 2, 4}, 100);
  sequence.keep(std::vector<int>{1, 2, 4, 5});
  std::vector<float> expected = range(0, 14);
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
  add_kept(*sequence, 40, 0);  // three pages, the last half full
  EXPECT_EQ(pool->n_pages(), 3);
  add(*sequence, {-1, -1, 1}, 100);
  auto fork = sequence->fork();
  auto& copy = dynamic_cast<KvSequence&>(*fork);
  EXPECT_EQ(pool->n_pages() - pool->n_free(), 3);  // nothing copied yet
  EXPECT_EQ(copy.n_pending(), 0);

  // The original compacts its tree into a page that the fork still reads.
  sequence->keep(std::vector<int>{1, 2});
  EXPECT_EQ(pool->n_pages() - pool->n_free(), 4);
  EXPECT_EQ(kept(copy, 0), range(0, 40));
  add_kept(copy, 12, 300);
  std::vector<float> expected = range(0, 40);
  expected.insert(expected.end(), {101, 102});
  EXPECT_EQ(kept(*sequence, 0), expected);
  EXPECT_EQ(kept(*sequence, 1), expected);
  std::vector<float> copied = range(0, 40);
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

// Once warm, rounds of drafting, keeping and forking take no new memory.
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

TEST(KvSequence, PagesAreUsedAgain) {
  const auto pool = std::make_shared<PagePool>(kShape);
  int n_pages_when_warm = 0;
  for (int request = 0; request < 20; ++request) {
    KvSequence sequence(pool);
    for (int round = 0; round < 10; ++round) {
      add(sequence, {-1, -1, 1, 2, 0}, 0);
      const auto fork = sequence.fork();
      sequence.keep(std::vector<int>{1, 2, 3});
    }
    EXPECT_EQ(sequence.n_kept(), 30);
    if (request == 0) n_pages_when_warm = pool->n_pages();
  }
  EXPECT_EQ(pool->n_pages(), n_pages_when_warm);
}

}  // namespace
}  // namespace outrider
