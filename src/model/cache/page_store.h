// SPDX-License-Identifier: Apache-2.0
// The bytes of pages, in any memory. PagePool records which pages are in use.
//
// Not thread-safe, except as HostPageStore says.
#ifndef OUTRIDER_MODEL_CACHE_PAGE_STORE_H_
#define OUTRIDER_MODEL_CACHE_PAGE_STORE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/cache/cache_group.h"
#include "model/cache/page_pool.h"
#include "model/cache/page_table.h"
#include "model/cache/token_tree.h"

namespace outrider {

class PageStore {
 public:
  virtual ~PageStore() = default;
  PageStore(const PageStore&) = delete;
  PageStore& operator=(const PageStore&) = delete;

  // Allocates memory for a page of the group, unless it has some; its contents are undefined. May
  // throw std::bad_alloc, or Error if a device has none.
  virtual void provide(PageId page, int group) = 0;
  // The page's memory is not needed until it is used again; its contents become undefined.
  virtual void give_back(PageId page, int group) = 0;

  // Copies the first n slots of one page into another, both of the group. For groups without keys:
  // the whole page, unless n is 0.
  virtual void copy_first_slots(int group, PageId from, PageId to, int n) = 0;
  // Reads the first n slots of a page as bytes (page_bytes() of its group), followed by zeros.
  // write_page() is the inverse and takes whole pages.
  virtual void read_first_slots(int group, PageId from, int n, std::span<std::byte> out) const = 0;
  virtual void write_page(int group, PageId to, std::span<const std::byte> page) = 0;
  virtual std::size_t page_bytes(int group) const = 0;
  // Sets the whole page to 0.
  virtual void clear_page(int group, PageId page) = 0;
  // Prepares everything that move_slots() needs for a group, so that it allocates nothing. May
  // throw Error if a device has too little memory.
  virtual void prepare_moves(int /*group*/) {}
  // Moves keys and values of all layers of the table's group, in order.
  virtual void move_slots(const PageTable& table, std::span<const SlotMove> moves) = 0;

  // For a store in this machine's memory: page_bytes() of its group, once provided.
  std::byte* bytes(PageId page) const { return addresses_[static_cast<std::size_t>(page)]; }

 protected:
  PageStore() = default;

  std::vector<std::byte*> addresses_;  // by page; null: not provided
};

using MakePageStore = std::function<std::unique_ptr<PageStore>(std::span<const CacheGroup>)>;

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_PAGE_STORE_H_
