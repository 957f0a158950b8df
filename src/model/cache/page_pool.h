// SPDX-License-Identifier: Apache-2.0
// Bookkeeping of pages: which exist, who uses them, and how much memory they take. It holds no
// bytes; those are in a PageStore, under the same ids.
//
// All groups draw on one budget. A page without users stays with its group and is reused before a
// new one is made. If another group needs its memory, that is first returned to the system; the
// page is then bare, and takes no memory until it is used again.
//
// Invariants: a page is in use, free or bare; used_bytes() <= held_bytes() <= max_bytes();
// release() never allocates. Not thread-safe.
#ifndef OUTRIDER_MODEL_CACHE_PAGE_POOL_H_
#define OUTRIDER_MODEL_CACHE_PAGE_POOL_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace outrider {

using PageId = std::int32_t;
inline constexpr PageId kNoPage = -1;

class PagePool {
 public:
  static constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();

  // page_bytes (n_groups): bytes of a page of each group. max_bytes: limit of all pages together.
  PagePool(std::span<const std::size_t> page_bytes, std::size_t max_bytes);

  // Bytes of the pages in use; and with the free ones.
  std::size_t used_bytes() const { return used_bytes_; }
  std::size_t held_bytes() const { return held_bytes_; }
  std::size_t max_bytes() const { return max_bytes_; }
  // Bytes of n_pages[g] pages of each group g (n_groups).
  std::size_t bytes_of(std::span<const int> n_pages) const;
  // Whether n_pages[g] pages of each group g could be acquired now, or after n_released_bytes of
  // the used ones are released.
  bool fits(std::span<const int> n_pages, std::size_t n_released_bytes = 0) const {
    return bytes_of(n_pages) <= max_bytes_ - (used_bytes_ - n_released_bytes);
  }

  // A page to make bare before acquire(group); kNoPage if none is needed. The page counts as bare
  // from then on.
  PageId evict_for(int group);
  // A page of the group with one user and undefined contents. kNoPage if the budget is used up. May
  // throw std::bad_alloc; nothing has changed then.
  PageId acquire(int group);
  void share(PageId page) { ++pages_[static_cast<std::size_t>(page)].n_users; }
  void release(PageId page);
  bool is_shared(PageId page) const { return pages_[static_cast<std::size_t>(page)].n_users > 1; }
  int group_of(PageId page) const { return pages_[static_cast<std::size_t>(page)].group; }

  int n_pages() const { return static_cast<int>(pages_.size()); }  // in use, free or bare
  int n_free() const;
  int n_bare() const;
  int n_used() const { return n_pages() - n_free() - n_bare(); }

 private:
  struct Page {
    int group;
    int n_users;
  };
  // The vectors have capacity for all pages of the group.
  struct Group {
    std::size_t page_bytes;
    std::size_t n_pages = 0;
    std::vector<PageId> free;
    std::vector<PageId> bare;
  };

  std::size_t max_bytes_;
  std::size_t used_bytes_ = 0;
  std::size_t held_bytes_ = 0;
  std::vector<Page> pages_;  // by id
  std::vector<Group> groups_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_PAGE_POOL_H_
