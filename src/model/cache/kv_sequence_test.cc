// SPDX-License-Identifier: Apache-2.0
#include "model/cache/kv_sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "tests/support/marked_slots.h"

namespace outrider {
namespace {

using test::add;
using test::add_kept;
using test::chunks;
using test::number_at;
using test::slots_read;

constexpr LayerCache kFull{.n_heads = 1, .head_dim = 3};

std::shared_ptr<KvCache> make_cache(const std::vector<LayerCache>& layers = {kFull, kFull},
                                    std::size_t max_bytes = PagePool::kUnbounded) {
  return std::make_shared<KvCache>(layers, kernels::KvKind::f32, max_bytes);
}

// The numbers in the keys that a node attends to, in order.
std::vector<float> walk(const KvSequence& sequence, int node, int layer) {
  std::vector<float> numbers;
  const std::vector<const void*> pages = chunks(sequence, layer);
  for (const int slot : slots_read(sequence, node)) {
    numbers.push_back(test::marked(
        sequence.shape(layer), pages[static_cast<std::size_t>(slot / kPageTokens)], slot, layer));
  }
  return numbers;
}

std::vector<float> kept(const KvSequence& sequence, int layer) {
  std::vector<float> numbers;
  for (int slot = 0; slot < sequence.n_kept(); ++slot) {
    numbers.push_back(number_at(sequence, slot, layer));
  }
  return numbers;
}

std::vector<float> range(float first, int n) {
  std::vector<float> numbers;
  for (int i = 0; i < n; ++i) numbers.push_back(first + static_cast<float>(i));
  return numbers;
}

TEST(KvSequence, GathersAncestorsInOrderOfPosition) {
  KvSequence sequence(make_cache());
  add_kept(sequence, kPageTokens - 2, 0);
  add(sequence, {-1, -1, 1, 0, 2, 4}, 100);  // across a page boundary
  EXPECT_EQ(sequence.depth(5), 3);
  for (const int node : {0, 3, 5}) {
    EXPECT_EQ(sequence.n_contiguous(node), kPageTokens - 2 + (node == 5 ? 0 : 1)) << node;
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
  const auto cache = make_cache();
  PagePool* const pool = &cache->pool();
  KvSequence sequence(cache);
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
  const auto cache = make_cache();
  PagePool* const pool = &cache->pool();
  auto sequence = std::make_unique<KvSequence>(cache);
  add_kept(*sequence, 3 * kPageTokens - 8, 0);  // three pages, the last with 8 free slots
  EXPECT_EQ(pool->n_pages(), 3);
  add(*sequence, {-1, -1, 1}, 100);
  auto fork = sequence->fork();
  auto& copy = dynamic_cast<KvSequence&>(*fork);
  EXPECT_EQ(pool->n_pages() - pool->n_free(), 3);  // nothing copied yet
  EXPECT_EQ(copy.n_pending(), 0);

  // The original compacts its tree within a page that the fork still reads.
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

  // Truncated into shared pages and written again: only this copy changes.
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

// Once warm, rounds of drafting, keeping and forking allocate no new pages.
TEST(KvSequence, PagesAreUsedAgain) {
  const auto cache = make_cache();
  PagePool* const pool = &cache->pool();
  int n_pages_when_warm = 0;
  constexpr int kRounds = kPageTokens / 2;  // three tokens each: a page and a half
  for (int request = 0; request < 20; ++request) {
    KvSequence sequence(cache);
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

TEST(KvSequence, PagesAreTakenAsTheyAreNeeded) {
  const auto cache = make_cache();
  KvSequence sequence(cache);
  sequence.expect(100 * kPageTokens);
  EXPECT_EQ(cache->pool().n_pages(), 0);
  sequence.ensure_slots(kPageTokens);
  EXPECT_EQ(cache->pool().n_used(), 1);
  sequence.ensure_slots(kPageTokens + 1);
  EXPECT_EQ(cache->pool().n_used(), 2);
  EXPECT_TRUE(sequence.empty());
  sequence.keep({});
  EXPECT_EQ(cache->pool().n_used(), 0);
}

// A window of 100: a page of 64 is freed once position n_kept - 64 no longer reads it.
TEST(KvSequence, AWindowGivesItsPagesBack) {
  const auto cache = make_cache({kFull, {.n_heads = 1, .head_dim = 3, .window = 100}});
  KvSequence sequence(cache);
  EXPECT_EQ(cache->groups().size(), 2u);
  const int n_last = kRewindTokens + 99 + kPageTokens;  // reads slot 64 from position n - 64
  add_kept(sequence, n_last - 1, 0);
  EXPECT_NE(chunks(sequence, 1)[0], nullptr);
  add_kept(sequence, 1, static_cast<float>(n_last - 1));
  const std::vector<const void*> pages = chunks(sequence, 1);
  EXPECT_EQ(pages.size(), sequence.n_pages(0));
  EXPECT_EQ(pages[0], nullptr);
  EXPECT_NE(pages[1], nullptr);
  EXPECT_NE(chunks(sequence, 0)[0], nullptr);
  EXPECT_EQ(kept(sequence, 0), range(0, n_last));
  for (int slot = kPageTokens; slot < n_last; ++slot) {
    EXPECT_EQ(number_at(sequence, slot, 1), static_cast<float>(slot));
  }
  // At any length it takes the same number of pages: those that 100 + 64 positions and a page may
  // touch.
  add_kept(sequence, 1000, 0);
  int n_there = 0;
  for (const void* page : chunks(sequence, 1)) n_there += page == nullptr ? 0 : 1;
  EXPECT_LE(n_there, 4);
  EXPECT_GE(n_there, 3);
}

TEST(KvSequence, RewindsWhereTheWindowIsThere) {
  const auto cache = make_cache({{.n_heads = 1, .head_dim = 3, .window = 100}, kFull});
  KvSequence sequence(cache);
  add_kept(sequence, 100, 0);
  EXPECT_EQ(sequence.rewind(3), 3);  // nothing was dropped
  add_kept(sequence, 497, 3);
  add(sequence, {-1, 0}, 900);
  EXPECT_THROW(sequence.rewind(501), Error);
  EXPECT_THROW(sequence.rewind(-1), Error);
  EXPECT_EQ(sequence.n_pending(), 2);
  EXPECT_EQ(sequence.rewind(500 - kRewindTokens), 500 - kRewindTokens);
  EXPECT_EQ(sequence.n_pending(), 0);
  for (int slot = 500 - kRewindTokens - 99; slot < sequence.n_kept(); ++slot) {
    EXPECT_EQ(number_at(sequence, slot, 0), static_cast<float>(slot));
  }
  EXPECT_EQ(kept(sequence, 1), range(0, 500 - kRewindTokens));
  add_kept(sequence, 64, 436);
  auto fork = sequence.fork();
  EXPECT_EQ(fork->rewind(200), 0);
  EXPECT_EQ(sequence.n_kept(), 500);
  EXPECT_THROW(sequence.truncate(200), Error);
  EXPECT_EQ(sequence.n_kept(), 0);
  EXPECT_EQ(cache->pool().n_used(), 0);
  add_kept(sequence, 70, 0);
  EXPECT_EQ(kept(sequence, 0), range(0, 70));
}

TEST(KvSequence, AnExhaustedPoolChangesNothing) {
  const std::vector<LayerCache> layers = {kFull, {.n_heads = 2, .head_dim = 3, .window = 100}};
  const std::size_t both =
      KvCache(layers, kernels::KvKind::f32).pool().bytes_of(std::vector<int>{1, 1});
  const auto cache = make_cache(layers, 4 * both + 10);
  KvSequence one(cache);
  KvSequence two(cache);
  add_kept(one, kPageTokens, 0);
  add_kept(two, kPageTokens, 0);
  const auto fork = two.fork();
  one.ensure_slots(1);
  one.keep({});
  const std::size_t used = cache->pool().used_bytes();
  EXPECT_EQ(used, 2 * both);
  // Two more pages of each group are free: enough for the first block, but not for both.
  const KvSequence::Reservation blocks[] = {{&one, kPageTokens + 1}, {&two, 1}};
  try {
    KvSequence::ensure_slots(blocks);
    FAIL() << "five pages in the place of four";
  } catch (const Error& error) {
    const std::string what = error.what();
    for (const std::string& part :
         {std::string("[forward] KV cache"), std::string("--kv-memory"),
          "at most " + std::to_string(4 * both + 10), std::to_string(used) + " in use",
          std::to_string(3 * both) + " more"}) {
      EXPECT_NE(what.find(part), std::string::npos) << what;
    }
  }
  EXPECT_EQ(cache->pool().used_bytes(), used);
  EXPECT_EQ(one.n_pages(0), 1u);
  EXPECT_EQ(two.n_pages(0), 1u);
  // With one page less, both fit.
  const KvSequence::Reservation fewer[] = {{&one, kPageTokens}, {&two, 1}};
  KvSequence::ensure_slots(fewer);
  EXPECT_EQ(cache->pool().used_bytes(), 4 * both);
}

// A fork shares the page in which a path would be moved.
TEST(KvSequence, KeepChangesNothingWhereItsCopyDoesNotFit) {
  const auto cache = make_cache({kFull}, make_cache({kFull})->groups()[0].page_bytes());
  KvSequence sequence(cache);
  add_kept(sequence, 5, 0);
  add(sequence, {-1, -1, 1}, 100);
  auto fork = sequence.fork();
  const std::vector<int> path = {1, 2};
  EXPECT_THROW(sequence.keep(path), Error);
  EXPECT_EQ(sequence.n_kept(), 5);
  EXPECT_EQ(sequence.n_pending(), 3);
  EXPECT_EQ(walk(sequence, 2, 0), (std::vector<float>{0, 1, 2, 3, 4, 101, 102}));
  EXPECT_THROW(sequence.ensure_slots(1), Error);
  fork.reset();
  sequence.keep(path);
  EXPECT_EQ(kept(sequence, 0), (std::vector<float>{0, 1, 2, 3, 4, 101, 102}));
}

// Two sequences that share a page copy it once: the last user keeps it.
TEST(KvSequence, WritersOfOnePageTakeOneCopyLess) {
  const auto cache = make_cache({kFull}, 2 * make_cache({kFull})->groups()[0].page_bytes());
  KvSequence one(cache);
  add_kept(one, 5, 0);
  const auto fork = one.fork();
  auto& two = dynamic_cast<KvSequence&>(*fork);
  const KvSequence::Reservation blocks[] = {{&one, 1}, {&two, 1}};
  KvSequence::ensure_slots(blocks);
  EXPECT_EQ(cache->pool().n_used(), 2);
  EXPECT_NE(one.layer(0, 0), two.layer(0, 0));
  EXPECT_EQ(kept(one, 0), range(0, 5));
  EXPECT_EQ(kept(two, 0), range(0, 5));
}

}  // namespace
}  // namespace outrider
