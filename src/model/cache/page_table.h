// SPDX-License-Identifier: Apache-2.0
// The pages of one sequence in one group: page i holds slots i * page_slots() and on. It holds no
// bytes.
//
// Pages in front may have been released (they lie before a window); their entries are kNoPage. All
// later ones are present. The pool must outlive the table. Not thread-safe.
#ifndef OUTRIDER_MODEL_CACHE_PAGE_TABLE_H_
#define OUTRIDER_MODEL_CACHE_PAGE_TABLE_H_

#include <cstddef>
#include <span>
#include <vector>

#include "model/cache/cache_group.h"
#include "model/cache/page_pool.h"

namespace outrider {

// Pages that n_slots slots of keys and values take.
constexpr std::size_t pages_of(int n_slots) {
  return static_cast<std::size_t>((n_slots + kPageTokens - 1) / kPageTokens);
}

class PageTable {
 public:
  PageTable(PagePool& pool, int group, int page_slots = kPageTokens)
      : pool_(&pool), group_(group), page_slots_(page_slots) {}
  ~PageTable() { drop_beyond(0); }
  PageTable(PageTable&& other) noexcept;
  PageTable& operator=(PageTable&&) = delete;
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;

  // A table that shares the pages of the first n_slots slots.
  PageTable fork(int n_slots) const;

  int group() const { return group_; }
  int page_slots() const { return page_slots_; }
  // Pages that n_slots slots take.
  std::size_t pages_for(int n_slots) const {
    return static_cast<std::size_t>((n_slots + page_slots_ - 1) / page_slots_);
  }
  std::size_t n_pages() const { return pages_.size(); }  // released ones included
  PageId page(std::size_t index) const { return pages_[index]; }
  PageId page_of(int slot) const { return pages_[static_cast<std::size_t>(slot / page_slots_)]; }
  // The first slot whose page is present, if any is.
  int first_slot() const { return static_cast<int>(first_) * page_slots_; }

  // For an empty table: marks the first n_gone pages as released.
  void begin_at(std::size_t n_gone);
  // put() allocates nothing for up to n_pages pages in all. May throw std::bad_alloc.
  void reserve(std::size_t n_pages);
  // Sets the page at index and takes over the caller's use of it. index is the end of the table, or
  // that of a page whose use the caller has ended.
  void put(std::size_t index, PageId page);
  // Releases pages without a slot before n_slots.
  void drop_beyond(int n_slots);
  // Releases pages without a slot from `slot` on. Their entries stay.
  void drop_before(int slot);

 private:
  PagePool* pool_;
  int group_;
  int page_slots_;
  std::size_t first_ = 0;  // entries before it are kNoPage, others are pages
  std::vector<PageId> pages_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_PAGE_TABLE_H_
