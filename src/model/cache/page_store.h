// The bytes of pages, in this machine's memory. Who uses which page is a PagePool's business.
//
// Memory is asked for in pieces of several pages: as many pages again as the group has, up to 16
// MiB, so that short contexts take little. All lie in huge pages (base/pooled_memory.h).
//
// Bytes of different slots may be read and written from many threads while no member runs that is
// not const.
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

  // Memory for a page of the group, unless it has some: whole cache lines, contents undefined. May
  // throw std::bad_alloc.
  void provide(PageId page, int group);
  // The page's memory goes back to the system, but for its parts of system pages that it shares
  // with its neighbours. Its address stays; what it holds is undefined.
  void give_back(PageId page, int group);
  // page_bytes() of its group, once provided.
  std::byte* bytes(PageId page) const { return addresses_[static_cast<std::size_t>(page)]; }

  // The first n slots of one page into another, both of the group. Of groups without keys the whole
  // page, unless n is 0.
  void copy_first_slots(int group, PageId from, PageId to, int n);
  // The first n slots of a page as bytes (page_bytes() of its group), zeros behind them; and back:
  // write_page() takes whole pages.
  void read_first_slots(int group, PageId from, int n, std::span<std::byte> out) const;
  void write_page(int group, PageId to, std::span<const std::byte> page);
  std::size_t page_bytes(int group) const {
    return groups_[static_cast<std::size_t>(group)].page_bytes;
  }
  // All of a page becomes 0.
  void clear_page(int group, PageId page);
  // Moves keys and values of all layers of the table's group, in order.
  void move_slots(const PageTable& table, std::span<const SlotMove> moves);

 private:
  struct Group {
    bool has_keys;
    int n_layers;
    KvShape shape;
    std::size_t page_bytes;
    std::size_t n_pages = 0;      // provided
    std::byte* unused = nullptr;  // in its last piece of memory, pages that nobody has asked for
    std::size_t n_unused = 0;
  };

  void extend(Group& group);

  std::vector<Group> groups_;
  std::vector<PooledMemory> memory_;
  std::vector<std::byte*> addresses_;  // by page; null: not provided
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_PAGE_STORE_H_
