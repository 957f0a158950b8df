// SPDX-License-Identifier: Apache-2.0
#include "model/cache/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "kernels/dispatch.h"
#include "model/cache/grow_ahead.h"
#include "model/cache/host_page_store.h"
#include "outrider/error.h"

namespace outrider {
namespace {

std::vector<std::size_t> page_bytes(std::span<const CacheGroup> groups) {
  std::vector<std::size_t> bytes;
  bytes.reserve(groups.size());
  for (const CacheGroup& group : groups) bytes.push_back(group.page_bytes());
  return bytes;
}

}  // namespace

KvCache::KvCache(std::span<const LayerCache> layers, kernels::KvKind kind, std::size_t max_bytes,
                 const MakePageStore& make_store, std::string limit)
    : groups_(make_cache_groups(layers, kind)),
      places_(layers.size()),
      replay_({.table = kernels::compiled_tables().front(), .n_threads = 1}),
      pool_(page_bytes(groups_), max_bytes),
      limit_(std::move(limit)),
      store_(make_store ? make_store(groups_) : std::make_unique<HostPageStore>(groups_)),
      n_needed_(groups_.size(), 1) {
  if (!pool_.fits(n_needed_)) {
    throw UsageError(
        "make KV cache", limit_,
        fmt::format("at least {} bytes (for {} tokens)", pool_.bytes_of(n_needed_), kPageTokens),
        fmt::format("{}", max_bytes));
  }
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    const CacheKind kind = groups_[group].kind;
    if (kind == CacheKind::state) state_group_ = static_cast<int>(group);
    std::size_t at_bytes = 0;
    for (const int layer : groups_[group].layers) {
      LayerPlace& place = places_[static_cast<std::size_t>(layer)];
      if (kind == CacheKind::inputs) {
        place.inputs_at_bytes = at_bytes;
      } else {
        place = {.group = static_cast<int>(group), .at_bytes = at_bytes};
      }
      at_bytes += groups_[group].layer_bytes();
    }
  }
}

std::size_t KvCache::token_bytes() const {
  std::size_t bytes = 0;
  for (const CacheGroup& group : groups_) {
    if (has_keys(group.kind) && group.side == CacheSide::text) bytes += group.page_bytes();
  }
  return bytes / kPageTokens;
}

bool KvCache::has_encoder() const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [](const CacheGroup& group) { return group.side == CacheSide::cross; });
}

std::size_t KvCache::state_bytes() const {
  return state_group_ < 0 ? 0 : groups_[static_cast<std::size_t>(state_group_)].page_bytes();
}

std::size_t KvCache::input_bytes() const {
  return state_group_ < 0
             ? 0
             : groups_[static_cast<std::size_t>(state_group_) + 1].page_bytes() / kInputNodes;
}

void KvCache::own(std::span<const SlotRange> ranges, std::string_view operation) {
  find_steps(ranges);
  std::size_t n_done = 0;
  try {
    acquire_pages(operation);
    for (const Step& step : steps_) {
      if (step.shared != kNoPage) {  // a device may have too little memory for the copy, or be lost
        store_->copy_first_slots(step.table->group(), step.shared, step.page, step.n_copied);
      }
      step.table->put(step.index, step.page);
      ++n_done;
    }
  } catch (...) {
    undo(n_done);
    throw;
  }
}

// If two of the tables share a page, it is copied once. The reference to a page that will be copied
// is released here, so that the last user finds it unshared.
void KvCache::find_steps(std::span<const SlotRange> ranges) {
  steps_.clear();
  std::fill(n_needed_.begin(), n_needed_.end(), 0);
  std::size_t n_max = 0;
  for (const SlotRange& range : ranges) {
    const std::size_t n_pages = range.table->pages_for(range.end);
    range.table->reserve(n_pages);
    n_max += n_pages - static_cast<std::size_t>(range.begin / range.table->page_slots());
  }
  reserve_ahead(steps_, n_max);
  for (const SlotRange& range : ranges) {
    PageTable& table = *range.table;
    const int page_slots = table.page_slots();
    for (auto index = static_cast<std::size_t>(range.begin / page_slots);
         index < table.pages_for(range.end); ++index) {
      Step step{.table = &table, .index = index, .shared = kNoPage, .n_copied = 0, .page = kNoPage};
      if (index < table.n_pages()) {
        if (!pool_.is_shared(table.page(index))) continue;
        step.shared = table.page(index);
        step.n_copied =
            std::clamp(range.n_used - static_cast<int>(index) * page_slots, 0, page_slots);
        pool_.release(step.shared);
      }
      ++n_needed_[static_cast<std::size_t>(table.group())];
      steps_.push_back(step);
    }
  }
}

int KvCache::n_pages_to_own(const PageTable& table, int begin, int end) const {
  int n_pages = 0;
  for (auto index = static_cast<std::size_t>(begin / table.page_slots());
       index < table.pages_for(end); ++index) {
    if (index >= table.n_pages() || pool_.is_shared(table.page(index))) ++n_pages;
  }
  return n_pages;
}

void KvCache::acquire_pages(std::string_view operation) {
  if (!pool_.fits(n_needed_)) {
    const std::size_t n_more = pool_.bytes_of(n_needed_);
    throw Error(operation, "KV cache",
                fmt::format("at most {} bytes ({})", pool_.max_bytes(), limit_),
                fmt::format("{}: {} in use and {} more", pool_.used_bytes() + n_more,
                            pool_.used_bytes(), n_more));
  }
  for (Step& step : steps_) step.page = acquire(step.table->group());
}

PageId KvCache::try_acquire(int group) noexcept {
  std::fill(n_needed_.begin(), n_needed_.end(), 0);
  n_needed_[static_cast<std::size_t>(group)] = 1;
  if (!pool_.fits(n_needed_)) return kNoPage;
  try {
    return acquire(group);
  } catch (const std::exception&) {
    return kNoPage;
  }
}

PageId KvCache::acquire(int group) {
  for (PageId bare; (bare = pool_.evict_for(group)) != kNoPage;) {
    store_->give_back(bare, pool_.group_of(bare));
  }
  const PageId page = pool_.acquire(group);
  try {
    store_->provide(page, group);
  } catch (...) {
    pool_.release(page);
    throw;
  }
  return page;
}

void KvCache::undo(std::size_t n_done) {
  for (const Step& step : std::span(steps_).subspan(n_done)) {
    if (step.page != kNoPage) pool_.release(step.page);
    if (step.shared != kNoPage) pool_.share(step.shared);
  }
}

}  // namespace outrider
