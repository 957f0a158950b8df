// SPDX-License-Identifier: Apache-2.0
#include "model/cache/host_page_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/attention/kv_layout.h"

namespace outrider {
namespace {

using kernels::KvKind;

std::vector<CacheGroup> three_groups(KvKind kind) {
  const LayerCache layers[] = {{.n_heads = 2, .head_dim = 21},
                               {.n_heads = 1, .head_dim = 6, .window = 9},
                               {.n_heads = 2, .head_dim = 21},
                               {.n_heads = 2, .head_dim = 22, .values_in_keys = 16}};
  return make_cache_groups(layers, kind);
}

TEST(HostPageStore, PagesLieApartInWholeCacheLines) {
  // Pages of 98,304 and of 56 million bytes: many per allocation, and larger than one.
  for (const std::size_t n_layers : {std::size_t{3}, std::size_t{1700}}) {
    const std::vector<LayerCache> layers(n_layers, {.n_heads = 2, .head_dim = 21});
    const std::vector<CacheGroup> groups = make_cache_groups(layers, KvKind::f32);
    HostPageStore store(groups);
    std::vector<std::byte*> pages;
    const int n_pages = n_layers == 3 ? 500 : 3;
    for (int page = 0; page < n_pages; ++page) {
      store.provide(page, 0);
      pages.push_back(store.bytes(page));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages.back()) % 64, 0u);
      // Memory checkers report a write to missing memory.
      pages.back()[0] = pages.back()[groups[0].page_bytes() - 1] = std::byte{1};
      store.provide(page, 0);  // does nothing: it has memory
      EXPECT_EQ(store.bytes(page), pages.back());
    }
    std::sort(pages.begin(), pages.end());
    for (std::size_t i = 1; i < pages.size(); ++i) {
      ASSERT_GE(static_cast<std::size_t>(pages[i] - pages[i - 1]), groups[0].page_bytes());
    }
  }
}

#if defined(__linux__)
TEST(HostPageStore, GivesMemoryBack) {
  const std::vector<LayerCache> layers(10, {.n_heads = 2, .head_dim = 64});
  const std::vector<CacheGroup> groups = make_cache_groups(layers, KvKind::f32);
  const std::size_t n_bytes = groups[0].page_bytes();
  HostPageStore store(groups);
  for (int page = 0; page < 3; ++page) {
    store.provide(page, 0);
    std::memset(store.bytes(page), 7, n_bytes);
  }
  store.give_back(1, 0);
  store.give_back(9, 0);  // does nothing: it has no memory
  const auto count = [&](int page, int value) {
    return static_cast<std::size_t>(
        std::count(store.bytes(page), store.bytes(page) + n_bytes, std::byte(value)));
  };
  EXPECT_EQ(count(0, 7), n_bytes);
  EXPECT_EQ(count(2, 7), n_bytes);
  EXPECT_GT(count(1, 0), n_bytes - 2 * (std::size_t{64} << 10));  // frees whole system pages
}
#endif

// Writes one byte of each element of a slot's keys and values, and its scales, from a given number.
class SlotBytes {
 public:
  SlotBytes(const CacheGroup& group, std::byte* page) : group_(&group), page_(page) {}

  void write(int token, int number) {
    visit(token, number, [](std::byte* at, std::byte value) { *at = value; });
  }
  bool holds(int token, int number) {
    bool all = true;
    visit(token, number, [&](const std::byte* at, std::byte value) { all &= *at == value; });
    return all;
  }

 private:
  template <typename Use>
  void visit(int token, int number, const Use& use) {
    const KvShape& shape = group_->shape;
    const kernels::KvLayout layout{shape.kind, shape.head_dim};
    const auto element = [&](std::byte* at, std::size_t n, int salt) {
      for (std::size_t i = 0; i < n; ++i) {
        use(at + i, std::byte(17 * number + 5 * salt + static_cast<int>(i)));
      }
    };
    std::byte* begin = page_;
    for (std::size_t layer = 0; layer < group_->layers.size(); ++layer) {
      for (int head = 0; head < shape.n_heads; ++head) {
        std::byte* keys = begin + shape.keys_at(head);
        // If values are a part of the keys, there are only keys.
        std::byte* values =
            begin + (shape.has_values() ? shape.values_at(head) : shape.keys_at(head));
        const int salt = 100 * static_cast<int>(layer) + 50 * head;
        for (int dim = 0; dim < shape.head_dim; ++dim) {
          element(keys + layout.key_at(token, dim), layout.element_bytes(), salt + dim);
          if (!shape.has_values()) continue;
          element(values + layout.value_at(token, dim), layout.element_bytes(), salt + dim + 1);
        }
        if (shape.kind != KvKind::int8) continue;
        element(keys + layout.scale_at(token), sizeof(float), salt + 3);
        if (!shape.has_values()) continue;
        element(values + layout.scale_at(token), sizeof(float), salt + 4);
      }
      begin += shape.layer_bytes();
    }
  }

  const CacheGroup* group_;
  std::byte* page_;
};

TEST(HostPageStore, MovesAndCopiesSlotsOfEveryLayerAndHead) {
  constexpr std::size_t kBytes[] = {1, 1, 1};
  for (const auto kind : {KvKind::f32, KvKind::bf16, KvKind::int8}) {
    const std::vector<CacheGroup> groups = three_groups(kind);
    for (int group = 0; group < 3; ++group) {
      SCOPED_TRACE(std::string(name_of(kind)) + " group " + std::to_string(group));
      const CacheGroup& its = groups[static_cast<std::size_t>(group)];
      HostPageStore store(groups);
      PagePool pool(kBytes, PagePool::kUnbounded);
      PageTable table(pool, group);
      table.reserve(2);
      for (std::size_t i = 0; i < 2; ++i) {
        table.put(i, pool.acquire(group));
        store.provide(table.page(i), group);
      }
      const auto at = [&](int slot) { return SlotBytes(its, store.bytes(table.page_of(slot))); };
      for (int slot = 0; slot < 2 * kPageTokens; ++slot) at(slot).write(slot % kPageTokens, slot);
      const SlotMove moves[] = {{66, 62}, {67, 63}, {70, 64}};
      store.move_slots(table, moves);
      for (int slot = 0; slot < 2 * kPageTokens; ++slot) {
        const int from = slot == 62 ? 66 : (slot == 63 ? 67 : (slot == 64 ? 70 : slot));
        ASSERT_TRUE(at(slot).holds(slot % kPageTokens, from)) << slot;
      }

      const PageId copy = pool.acquire(group);
      store.provide(copy, group);
      store.copy_first_slots(group, table.page(1), copy, 37);
      for (int token = 0; token < 37; ++token) {
        ASSERT_TRUE(SlotBytes(its, store.bytes(copy)).holds(token, token == 0 ? 70 : 64 + token));
      }
      pool.release(copy);
    }
  }
}

}  // namespace
}  // namespace outrider
