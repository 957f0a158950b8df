// The bytes of pages, in this machine's memory. A PagePool keeps track of their users.
//
// Memory is allocated for several pages at a time: as many as the group already has, up to 16 MiB,
// so that short contexts take little. It uses huge pages (base/pooled_memory.h).
//
// Bytes of different slots may be read and written from many threads while no non-const member
// runs.
#ifndef OUTRIDER_MODEL_CACHE_PAGE_STORE_H_
#define OUTRIDER_MODEL_CACHE_PAGE_STORE_H_

#include <cstddef>
#include <span>
#include <vector>

#include "base/pooled_memory.h"
#include "model/cache/cache_group.h"
#include "model/cache/page_pool.h"
#include "model/cache/page_table.h"
#include "model/cache/token_tree.h"

namespace outrider {

class PageStore {
 public:
  explicit PageStore(std::span<const CacheGroup> groups);
  PageStore(const PageStore&) = delete;
  PageStore& operator=(const PageStore&) = delete;

  // Allocates memory for a page of the group if it has none: whole cache lines, contents undefined.
  // May throw std::bad_alloc.
  void provide(PageId page, int group);
  // Returns the page's memory to the system, except for system pages that it shares with its
  // neighbours. Its address stays valid; its contents are undefined.
  void give_back(PageId page, int group);
  // page_bytes() of its group; call provide() first.
  std::byte* bytes(PageId page) const { return addresses_[static_cast<std::size_t>(page)]; }

  // Copies the first n slots of one page into another of the same group. In groups without keys
  // copies the whole page, unless n is 0.
  void copy_first_slots(int group, PageId from, PageId to, int n);
  // Reads the first n slots of a page as page_bytes() bytes of its group, zeros after them.
  // write_page() writes whole pages.
  void read_first_slots(int group, PageId from, int n, std::span<std::byte> out) const;
  void write_page(int group, PageId to, std::span<const std::byte> page);
  std::size_t page_bytes(int group) const {
    return groups_[static_cast<std::size_t>(group)].page_bytes;
  }
  // Sets the whole page to 0.
  void clear_page(int group, PageId page);
  // Moves keys and values of all layers of the table's group, in the order of `moves`.
  void move_slots(const PageTable& table, std::span<const SlotMove> moves);

 private:
  struct Group {
    bool has_keys;
    int n_layers;
    KvShape shape;
    std::size_t page_bytes;
    std::size_t n_pages = 0;      // provided
    std::byte* unused = nullptr;  // pages of its last allocation that have not been provided yet
    std::size_t n_unused = 0;
  };

  void extend(Group& group);

  std::vector<Group> groups_;
  std::vector<PooledMemory> memory_;
  std::vector<std::byte*> addresses_;  // by page; null: not provided
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_PAGE_STORE_H_
