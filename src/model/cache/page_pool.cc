// SPDX-License-Identifier: Apache-2.0
#include "model/cache/page_pool.h"

#include "model/cache/grow_ahead.h"

namespace outrider {
namespace {

PageId pop(std::vector<PageId>& pages) {
  const PageId page = pages.back();
  pages.pop_back();
  return page;
}

}  // namespace

PagePool::PagePool(std::span<const std::size_t> page_bytes, std::size_t max_bytes)
    : max_bytes_(max_bytes) {
  for (const std::size_t bytes : page_bytes) {
    groups_.push_back({.page_bytes = bytes, .n_pages = 0, .free = {}, .bare = {}});
  }
}

std::size_t PagePool::bytes_of(std::span<const int> n_pages) const {
  std::size_t bytes = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    bytes += static_cast<std::size_t>(n_pages[group]) * groups_[group].page_bytes;
  }
  return bytes;
}

PageId PagePool::evict_for(int group) {
  const Group& wanting = groups_[static_cast<std::size_t>(group)];
  if (!wanting.free.empty() || wanting.page_bytes <= max_bytes_ - held_bytes_) return kNoPage;
  if (wanting.page_bytes > max_bytes_ - used_bytes_) return kNoPage;  // evicting would not suffice
  for (Group& other : groups_) {
    if (other.free.empty()) continue;
    const PageId page = pop(other.free);
    other.bare.push_back(page);
    held_bytes_ -= other.page_bytes;
    return page;
  }
  return kNoPage;
}

PageId PagePool::acquire(int group) {
  Group& its = groups_[static_cast<std::size_t>(group)];
  PageId page = kNoPage;
  if (!its.free.empty()) {
    page = pop(its.free);
  } else {
    if (its.page_bytes > max_bytes_ - held_bytes_) return kNoPage;
    if (!its.bare.empty()) {
      page = pop(its.bare);
    } else {
      reserve_ahead(its.free, its.n_pages + 1);
      reserve_ahead(its.bare, its.n_pages + 1);
      reserve_ahead(pages_, pages_.size() + 1);
      page = static_cast<PageId>(pages_.size());
      pages_.push_back({.group = group, .n_users = 0});
      ++its.n_pages;
    }
    held_bytes_ += its.page_bytes;
  }
  used_bytes_ += its.page_bytes;
  pages_[static_cast<std::size_t>(page)].n_users = 1;
  return page;
}

void PagePool::release(PageId page) {
  Page& its = pages_[static_cast<std::size_t>(page)];
  if (--its.n_users > 0) return;
  Group& group = groups_[static_cast<std::size_t>(its.group)];
  group.free.push_back(page);
  used_bytes_ -= group.page_bytes;
}

int PagePool::n_free() const {
  std::size_t n = 0;
  for (const Group& group : groups_) n += group.free.size();
  return static_cast<int>(n);
}

int PagePool::n_bare() const {
  std::size_t n = 0;
  for (const Group& group : groups_) n += group.bare.size();
  return static_cast<int>(n);
}

}  // namespace outrider
