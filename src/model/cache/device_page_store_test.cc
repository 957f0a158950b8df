// SPDX-License-Identifier: Apache-2.0
// Compares pages in a device's memory with pages in host memory: the same bytes after the same
// moves, and a clear error if the device's memory is full.
#include "model/cache/device_page_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/host/host_device.h"
#include "model/cache/host_page_store.h"
#include "outrider/error.h"
#include "tests/support/faulty_device.h"
#include "tests/support/watched_device.h"

namespace outrider {
namespace {

using kernels::KvKind;
using ::testing::HasSubstr;

std::vector<CacheGroup> two_groups(KvKind kind) {
  const LayerCache layers[] = {{.n_heads = 2, .head_dim = 21},
                               {.n_heads = 1, .head_dim = 6, .window = 9},
                               {.n_heads = 2, .head_dim = 21}};
  return make_cache_groups(layers, kind);
}

// A device with this limit for one allocation; 0: none.
std::shared_ptr<device::Device> allowing(std::size_t max_bytes) {
  return std::make_shared<test::WatchedDevice>(std::make_shared<device::HostDevice>(), max_bytes);
}

// The size of n pages of a layer of the first group.
std::size_t bytes_of_pages(KvKind kind, std::size_t n) {
  return n * two_groups(kind)[0].shape.layer_bytes();
}

// Two stores with equal contents.
struct Stores {
  Stores(KvKind kind, std::shared_ptr<device::Device> device)
      : groups(two_groups(kind)), here(groups), there(std::move(device), groups) {}

  void provide(PageId page, int group) {
    here.provide(page, group);
    there.provide(page, group);
    std::vector<std::byte> bytes(here.page_bytes(group));
    // Floats of moderate size in every type that reads the bytes.
    for (std::byte& one : bytes) one = static_cast<std::byte>(0x3c + random() % 4);
    here.write_page(group, page, bytes);
    there.write_page(group, page, bytes);
  }
  void expect_same(PageId page, int group, int n_slots) const {
    std::vector<std::byte> expected(here.page_bytes(group));
    std::vector<std::byte> got(expected.size());
    here.read_first_slots(group, page, n_slots, expected);
    there.read_first_slots(group, page, n_slots, got);
    EXPECT_TRUE(got == expected) << "page " << page << " of group " << group;
  }

  std::mt19937 random{3};
  std::vector<CacheGroup> groups;
  HostPageStore here;
  DevicePageStore there;
};

class DevicePageStores : public ::testing::TestWithParam<std::size_t> {};

TEST_P(DevicePageStores, HaveTheBytesOfTheMachinesStore) {
  for (const KvKind kind : {KvKind::f32, KvKind::bf16, KvKind::int8}) {
    Stores stores(kind, allowing(bytes_of_pages(kind, GetParam())));
    // More pages than the first allocation holds, so that buffers grow when they have contents.
    for (PageId page = 0; page < 40; ++page) stores.provide(page, page % 2);
    for (PageId page = 0; page < 40; ++page) stores.expect_same(page, page % 2, kPageTokens);
    for (const int n : {0, 1, 3, 17, 64}) {
      stores.here.copy_first_slots(0, 2, 4, n);
      stores.there.copy_first_slots(0, 2, 4, n);
      stores.expect_same(4, 0, n);  // the slots after them are unused
      stores.here.copy_first_slots(1, 3, 5, n);
      stores.there.copy_first_slots(1, 3, 5, n);
      stores.expect_same(5, 1, n);
    }
    PagePool pool(std::vector<std::size_t>{stores.here.page_bytes(0), stores.here.page_bytes(1)},
                  PagePool::kUnbounded);
    for (int page = 0; page < 40; ++page) (void)pool.acquire(page % 2);
    PageTable table(pool, 0);
    for (std::size_t i = 0; i < 10; ++i) table.put(i, static_cast<PageId>(4 * i));
    // More moves than one submission holds, towards the beginning, as for a kept path.
    std::vector<SlotMove> moves;
    int from = 61;
    for (int to = 60; moves.size() < 300; ++to) {
      moves.push_back({from, to});
      from += 1 + static_cast<int>(stores.random() % 2);
    }
    stores.here.move_slots(table, moves);
    stores.there.move_slots(table, moves);
    for (PageId page = 0; page < 40; page += 4) stores.expect_same(page, 0, kPageTokens);
    stores.here.clear_page(0, 8);
    stores.there.clear_page(0, 8);
    stores.expect_same(8, 0, kPageTokens);
  }
}

// Whichever allocation fails while pages are provided and copied, and buffers grow: the pages are
// as before, and the same call succeeds once there is memory.
TEST_P(DevicePageStores, KeepTheirPagesIfMemoryIsUsedUp) {
  constexpr KvKind kKind = KvKind::int8;
  int n_failed = 0;
  for (int at = 0;; ++at) {
    SCOPED_TRACE(at);
    const auto device = std::make_shared<test::FaultyDevice>();
    Stores stores(kKind,
                  std::make_shared<test::WatchedDevice>(device, bytes_of_pages(kKind, GetParam())));
    device->run_out_at(at);
    // The part writes none of the first n_pages pages.
    const auto attempt = [&](PageId n_pages, const std::function<void()>& part) {
      try {
        part();
      } catch (const NoDeviceMemory&) {
        for (PageId page = 0; page < n_pages; ++page) {
          stores.expect_same(page, page % 2, kPageTokens);
        }
        part();
      }
    };
    for (PageId page = 0; page < 40; ++page) {
      attempt(page, [&] { stores.there.provide(page, page % 2); });
      stores.provide(page, page % 2);
    }
    for (const PageId to : {36, 37}) {
      attempt(to, [&] { stores.there.copy_first_slots(to % 2, to - 34, to, kPageTokens); });
      stores.here.copy_first_slots(to % 2, to - 34, to, kPageTokens);
    }
    for (PageId page = 0; page < 40; ++page) stores.expect_same(page, page % 2, kPageTokens);
    if (!device->has_run_out()) break;
    ++n_failed;
  }
  // Buffers of three layers, twice, and a program of moves for each group. More where the heads of
  // a layer are in several buffers.
  EXPECT_GE(n_failed, 3 + 3 + 2);
}

// All pages in one buffer; heads split once there are more than 16 pages; heads split from the
// first page on.
INSTANTIATE_TEST_SUITE_P(Allowing, DevicePageStores, ::testing::Values(0, 18, 12));

TEST(DevicePageStore, SaysHowManyTokensADeviceHolds) {
  const std::vector<CacheGroup> groups = two_groups(KvKind::f32);
  const std::size_t n_max = 20;  // of each head
  DevicePageStore store(allowing(n_max * groups[0].shape.layer_bytes() / 2 + 64), groups);
  std::vector<std::byte> bytes(store.page_bytes(0), std::byte{0x3f});
  for (std::size_t page = 0; page < n_max; ++page) store.provide(static_cast<PageId>(page), 0);
  EXPECT_EQ(store.layer(0, 0).size(), 2U);
  EXPECT_EQ(store.part_shape(0, 1).first_head, 1);
  store.write_page(0, 19, bytes);
  try {
    store.provide(20, 0);
    FAIL() << "a page beyond the limit";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("at most 1280 tokens"));
  }
  std::vector<std::byte> got(bytes.size());
  store.read_first_slots(0, 19, kPageTokens, got);
  EXPECT_NE(got.front(), std::byte{0});
}

TEST(DevicePageStore, HasNoPagesForOtherLayers) {
  const LayerCache layers[] = {{.n_heads = 1, .head_dim = 24, .values_in_keys = 16}};
  EXPECT_THROW(DevicePageStore(std::make_shared<device::HostDevice>(),
                               make_cache_groups(layers, KvKind::f32)),
               Error);
}

}  // namespace
}  // namespace outrider
