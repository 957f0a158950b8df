// SPDX-License-Identifier: Apache-2.0
#include "model/cache/page_table.h"

#include <algorithm>
#include <utility>

#include "model/cache/grow_ahead.h"

namespace outrider {

PageTable::PageTable(PageTable&& other) noexcept
    : pool_(other.pool_),
      group_(other.group_),
      page_slots_(other.page_slots_),
      first_(std::exchange(other.first_, 0)),
      pages_(std::exchange(other.pages_, {})) {}

PageTable PageTable::fork(int n_slots) const {
  PageTable copy(*pool_, group_, page_slots_);
  const std::size_t n = pages_for(n_slots);
  copy.first_ = std::min(first_, n);
  copy.pages_.assign(pages_.begin(), pages_.begin() + static_cast<std::ptrdiff_t>(n));
  for (std::size_t i = copy.first_; i < n; ++i) pool_->share(pages_[i]);
  return copy;
}

void PageTable::begin_at(std::size_t n_gone) {
  pages_.assign(n_gone, kNoPage);
  first_ = n_gone;
}

void PageTable::reserve(std::size_t n_pages) { reserve_ahead(pages_, n_pages); }

void PageTable::put(std::size_t index, PageId page) {
  if (index == pages_.size()) {
    pages_.push_back(page);
  } else {
    pages_[index] = page;
  }
}

void PageTable::drop_beyond(int n_slots) {
  const std::size_t n = pages_for(n_slots);
  while (pages_.size() > n) {
    if (pages_.size() > first_) pool_->release(pages_.back());
    pages_.pop_back();
  }
  first_ = std::min(first_, n);
}

void PageTable::drop_before(int slot) {
  const std::size_t n =
      std::min(static_cast<std::size_t>(std::max(slot, 0) / page_slots_), pages_.size());
  for (; first_ < n; ++first_) pool_->release(std::exchange(pages_[first_], kNoPage));
}

}  // namespace outrider
