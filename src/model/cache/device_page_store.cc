#include "model/cache/device_page_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/kv_layout.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kFirstPages = 16;
// Slot moves per submission.
constexpr int kMostMoves = 256;
constexpr std::size_t kMovesAt = device::kRangeAlignment;  // after the header
constexpr std::size_t kWordBytes = kMovesAt + kMostMoves * sizeof(device::TokenMove);

kernels::KvLayout layout_of(const device::CacheShape& shape) { return {shape.kv, shape.head_dim}; }

}  // namespace

DevicePageStore::DevicePageStore(std::shared_ptr<device::Device> device,
                                 std::span<const CacheGroup> groups)
    : device_(std::move(device)) {
  for (const CacheGroup& group : groups) {
    if (!has_keys(group.kind) || !group.shape.has_values() || group.side != CacheSide::text) {
      throw Error("make KV cache", device_->facts().name,
                  "layers with keys and values of their own text", "others");
    }
    groups_.push_back({.shape = {.kv = group.shape.kind,
                                 .n_kv_heads = group.shape.n_heads,
                                 .head_dim = group.shape.head_dim},
                       .layer_bytes = group.shape.layer_bytes(),
                       .layers = {},
                       .moves = nullptr});
    groups_.back().layers.resize(group.layers.size());
  }
  words_ = device_->allocate(kWordBytes);
  told_.resize(kWordBytes);
}

std::size_t DevicePageStore::page_bytes(int group) const {
  return group_of(group).layers.size() * group_of(group).layer_bytes;
}

void DevicePageStore::provide(PageId page, int group) {
  const auto index = static_cast<std::size_t>(page);
  if (places_.size() <= index) places_.resize(index + 1, kNowhere);
  if (places_[index] != kNowhere) return;
  Group& its = group_of(group);
  if (its.n_pages == its.n_most) grow(its);
  places_[index] = static_cast<std::uint32_t>(its.n_pages * its.layer_bytes / 4);
  ++its.n_pages;
}

// Grows one layer after another, so that just one exists twice at a time. If an allocation fails,
// the old buffers still hold their pages.
void DevicePageStore::grow(Group& group) {
  const std::size_t most_bytes =
      std::min<std::size_t>(device_->facts().most_buffer_bytes, std::size_t{kNowhere} * 4);
  const std::size_t most = most_bytes / group.layer_bytes;
  const std::size_t n_pages = std::min(std::max(kFirstPages, 2 * group.n_most), most);
  if (n_pages <= group.n_most) {
    throw Error("forward", "KV cache",
                fmt::format("at most {} tokens ({} allows {} bytes for a layer)",
                            most * kPageTokens, device_->facts().name, most_bytes),
                "more");
  }
  ++generation_;
  group.moves = nullptr;
  std::vector<std::byte> bytes(group.n_pages * group.layer_bytes);
  for (std::unique_ptr<device::Buffer>& layer : group.layers) {
    if (layer != nullptr && layer->n_bytes() >= n_pages * group.layer_bytes) continue;
    std::unique_ptr<device::Buffer> larger = device_->allocate(n_pages * group.layer_bytes);
    if (!bytes.empty()) {
      device_->download({layer.get(), 0, bytes.size()}, bytes);
      device_->upload(bytes, {larger.get(), 0, bytes.size()});
    }
    layer = std::move(larger);
  }
  group.n_most = n_pages;
}

device::Range DevicePageStore::layer(int group, std::size_t index) const {
  return whole(*group_of(group).layers[index]);
}

void DevicePageStore::copy_first_slots(int group, PageId from, PageId to, int n) {
  std::vector<device::TokenMove> moves;
  for (int i = 0; i < n; ++i) {
    const auto token = static_cast<std::uint32_t>(i);
    moves.push_back({{page_at(from), token}, {page_at(to), token}});
  }
  move(group_of(group), moves);
}

void DevicePageStore::move_slots(const PageTable& table, std::span<const SlotMove> moves) {
  std::vector<device::TokenMove> of_tokens;
  const auto place = [&](int slot) {
    return device::TokenPlace{page_at(table.page_of(slot)),
                              static_cast<std::uint32_t>(slot % kPageTokens)};
  };
  for (const SlotMove& move : moves) of_tokens.push_back({place(move.from), place(move.to)});
  move(group_of(table.group()), of_tokens);
}

void DevicePageStore::move(Group& group, std::span<const device::TokenMove> moves) {
  if (group.moves == nullptr) {
    const device::Rows rows = {{words_.get(), 0, device::kFacts * 4}, kMostMoves};
    const device::Range of_moves = {words_.get(), kMovesAt, kWordBytes - kMovesAt};
    std::vector<device::Step> steps;
    for (const auto& layer : group.layers) {
      steps.push_back(device::move_slots(rows, group.shape, of_moves, whole(*layer)));
    }
    group.moves = device_->record(steps);
  }
  while (!moves.empty()) {
    const std::span<const device::TokenMove> some =
        moves.first(std::min<std::size_t>(moves.size(), kMostMoves));
    moves = moves.subspan(some.size());
    device::FactWords facts{};
    facts[device::kFactRows] = static_cast<std::uint32_t>(some.size());
    std::memcpy(told_.data(), facts.data(), sizeof facts);
    std::memcpy(told_.data() + kMovesAt, some.data(), some.size_bytes());
    const std::size_t n_bytes = kMovesAt + some.size_bytes();
    device_->upload(std::span(told_).first(n_bytes), {words_.get(), 0, n_bytes});
    device_->submit(*group.moves);
  }
}

void DevicePageStore::read_first_slots(int group, PageId from, int n,
                                       std::span<std::byte> out) const {
  std::fill(out.begin(), out.end(), std::byte{0});
  const Group& its = group_of(group);
  const kernels::KvLayout layout = layout_of(its.shape);
  std::vector<std::byte> page(its.layer_bytes);
  std::byte* to = out.data();
  for (const auto& layer : its.layers) {
    device_->download({layer.get(), bytes_at(from), page.size()}, page);
    for (int head = 0; head < 2 * its.shape.n_kv_heads; ++head) {
      const std::size_t at = static_cast<std::size_t>(head) * layout.block_bytes();
      if (head < its.shape.n_kv_heads) {
        layout.copy_only_keys(page.data() + at, to + at, n);
      } else {
        layout.copy_only_values(page.data() + at, to + at, n);
      }
    }
    to += its.layer_bytes;
  }
}

void DevicePageStore::write_page(int group, PageId to, std::span<const std::byte> page) {
  const Group& its = group_of(group);
  for (std::size_t i = 0; i < its.layers.size(); ++i) {
    device_->upload(page.subspan(i * its.layer_bytes, its.layer_bytes),
                    {its.layers[i].get(), bytes_at(to), its.layer_bytes});
  }
}

void DevicePageStore::clear_page(int group, PageId page) {
  const std::vector<std::byte> zeros(page_bytes(group));
  write_page(group, page, zeros);
}

}  // namespace outrider
