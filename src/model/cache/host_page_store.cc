// SPDX-License-Identifier: Apache-2.0
#include "model/cache/host_page_store.h"

#include <algorithm>

#include "base/memory/big_memory.h"
#include "kernels/attention/kv_layout.h"
#include "model/cache/grow_ahead.h"

namespace outrider {
namespace {

// The largest allocation: several huge pages, of which at most the last one is partly unused.
constexpr std::size_t kMaxAtOnce_bytes = std::size_t{16} << 20;

// Calls use(byte offset of a head's block, layout) for the keys and the values of every head of a
// layer.
template <typename UseKeys, typename UseValues>
void for_blocks(const KvShape& shape, const UseKeys& use_keys, const UseValues& use_values) {
  const kernels::KvLayout layout{shape.kind, shape.head_dim};
  for (int head = 0; head < shape.n_heads; ++head) {
    use_keys(layout, shape.keys_at(head));
    if (shape.has_values()) use_values(layout, shape.values_at(head));
  }
}

}  // namespace

HostPageStore::HostPageStore(std::span<const CacheGroup> groups) {
  for (const CacheGroup& group : groups) {
    groups_.push_back({.has_keys = has_keys(group.kind),
                       .n_layers = static_cast<int>(group.layers.size()),
                       .shape = group.shape,
                       .page_bytes = group.page_bytes()});
  }
}

void HostPageStore::provide(PageId page, int group) {
  const auto index = static_cast<std::size_t>(page);
  if (addresses_.size() <= index) {
    reserve_ahead(addresses_, index + 1);
    addresses_.resize(index + 1, nullptr);
  }
  if (addresses_[index] != nullptr) return;
  Group& its = groups_[static_cast<std::size_t>(group)];
  if (its.n_unused == 0) extend(its);
  addresses_[index] = its.unused;
  its.unused += its.page_bytes;
  --its.n_unused;
  ++its.n_pages;
}

void HostPageStore::extend(Group& group) {
  const std::size_t most = std::max<std::size_t>(kMaxAtOnce_bytes / group.page_bytes, 1);
  const std::size_t n = std::clamp<std::size_t>(group.n_pages, 1, most);
  reserve_ahead(memory_, memory_.size() + 1);
  memory_.push_back(allocate_pooled_memory(n * group.page_bytes));
  group.unused = memory_.back().get();
  group.n_unused = n;
}

void HostPageStore::give_back(PageId page, int group) {
  const auto index = static_cast<std::size_t>(page);
  if (index >= addresses_.size() || addresses_[index] == nullptr) return;
  give_back_memory(addresses_[index], groups_[static_cast<std::size_t>(group)].page_bytes);
}

void HostPageStore::copy_first_slots(int group, PageId from, PageId to, int n) {
  const Group& its = groups_[static_cast<std::size_t>(group)];
  const std::byte* source = bytes(from);
  std::byte* target = bytes(to);
  if (!its.has_keys) {
    if (n > 0) std::copy_n(source, its.page_bytes, target);
    return;
  }
  for (int layer = 0; layer < its.n_layers; ++layer) {
    for_blocks(
        its.shape,
        [&](const kernels::KvLayout& layout, std::size_t at) {
          layout.copy_first_keys(source + at, target + at, n);
        },
        [&](const kernels::KvLayout& layout, std::size_t at) {
          layout.copy_first_values(source + at, target + at, n);
        });
    source += its.shape.layer_bytes();
    target += its.shape.layer_bytes();
  }
}

void HostPageStore::read_first_slots(int group, PageId from, int n,
                                     std::span<std::byte> out) const {
  std::fill(out.begin(), out.end(), std::byte{0});
  const Group& its = groups_[static_cast<std::size_t>(group)];
  const std::byte* source = bytes(from);
  std::byte* target = out.data();
  for (int layer = 0; layer < its.n_layers; ++layer) {
    for_blocks(
        its.shape,
        [&](const kernels::KvLayout& layout, std::size_t at) {
          layout.copy_only_keys(source + at, target + at, n);
        },
        [&](const kernels::KvLayout& layout, std::size_t at) {
          layout.copy_only_values(source + at, target + at, n);
        });
    source += its.shape.layer_bytes();
    target += its.shape.layer_bytes();
  }
}

void HostPageStore::clear_page(int group, PageId page) {
  std::fill_n(bytes(page), page_bytes(group), std::byte{0});
}

void HostPageStore::write_page(int group, PageId to, std::span<const std::byte> page) {
  std::copy_n(page.begin(), page_bytes(group), bytes(to));
}

void HostPageStore::move_slots(const PageTable& table, std::span<const SlotMove> moves) {
  const Group& its = groups_[static_cast<std::size_t>(table.group())];
  for (const SlotMove& move : moves) {
    const std::byte* source = bytes(table.page_of(move.from));
    std::byte* target = bytes(table.page_of(move.to));
    const int from = move.from % kPageTokens;
    const int to = move.to % kPageTokens;
    for (int layer = 0; layer < its.n_layers; ++layer) {
      for_blocks(
          its.shape,
          [&](const kernels::KvLayout& layout, std::size_t at) {
            layout.copy_key(source + at, from, target + at, to);
          },
          [&](const kernels::KvLayout& layout, std::size_t at) {
            layout.copy_value(source + at, from, target + at, to);
          });
      source += its.shape.layer_bytes();
      target += its.shape.layer_bytes();
    }
  }
}

}  // namespace outrider
