// SPDX-License-Identifier: Apache-2.0
// The bytes of pages in this machine's memory.
//
// Memory is allocated in pieces of several pages: as many pages again as the group has, up to 16
// MiB, so that short contexts take little. All pieces are in huge pages
// (base/memory/pooled_memory.h).
//
// Bytes of different slots may be read and written from many threads while no member function runs
// that is not const.
#ifndef OUTRIDER_MODEL_CACHE_HOST_PAGE_STORE_H_
#define OUTRIDER_MODEL_CACHE_HOST_PAGE_STORE_H_

#include <cstddef>
#include <span>
#include <vector>

#include "base/memory/pooled_memory.h"
#include "model/cache/cache_group.h"
#include "model/cache/page_store.h"

namespace outrider {

class HostPageStore final : public PageStore {
 public:
  explicit HostPageStore(std::span<const CacheGroup> groups);

  // In whole cache lines.
  void provide(PageId page, int group) override;
  // Returns the memory to the system, except for parts of system pages that are shared with
  // neighbours. The address stays.
  void give_back(PageId page, int group) override;
  void copy_first_slots(int group, PageId from, PageId to, int n) override;
  void read_first_slots(int group, PageId from, int n, std::span<std::byte> out) const override;
  void write_page(int group, PageId to, std::span<const std::byte> page) override;
  std::size_t page_bytes(int group) const override {
    return groups_[static_cast<std::size_t>(group)].page_bytes;
  }
  void clear_page(int group, PageId page) override;
  void move_slots(const PageTable& table, std::span<const SlotMove> moves) override;

 private:
  struct Group {
    bool has_keys;
    int n_layers;
    KvShape shape;
    std::size_t page_bytes;
    std::size_t n_pages = 0;      // provided so far
    std::byte* unused = nullptr;  // pages in its last piece of memory that were not yet provided
    std::size_t n_unused = 0;
  };

  void extend(Group& group);

  std::vector<Group> groups_;
  std::vector<PooledMemory> memory_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_HOST_PAGE_STORE_H_
