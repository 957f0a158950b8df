// SPDX-License-Identifier: Apache-2.0
#include "model/cache/device_page_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/attention/kv_layout.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kFirstPages = 16;
// Slot moves per submission.
constexpr int kMaxMoves = 256;
constexpr std::size_t kMovesAt = device::kRangeAlignment;  // after the header
constexpr std::size_t kWordBytes = kMovesAt + kMaxMoves * sizeof(device::TokenMove);

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
  if (places_.size() <= index) places_.resize(index + 1, {.index = kNowhere, .group = 0});
  if (places_[index].index != kNowhere) return;
  Group& its = group_of(group);
  if (its.n_pages == its.n_max) grow(its);
  places_[index] = {.index = static_cast<std::uint32_t>(its.n_pages),
                    .group = static_cast<std::uint32_t>(group)};
  ++its.n_pages;
}

// Grows layer by layer, so that at most one layer has both buffers at a time; if heads are split
// over more buffers than before, all layers do. After a failure, each layer's buffers
// still hold its pages.
void DevicePageStore::grow(Group& group) {
  const std::size_t max_bytes =
      std::min<std::size_t>(device_->facts().max_buffer_bytes, std::size_t{kNowhere} * 4);
  const auto max_pages = [&](std::size_t n_parts) {
    return max_bytes / (group.layer_bytes / n_parts);
  };
  const std::size_t wanted = std::max(kFirstPages, 2 * group.n_max);
  const auto n_heads = static_cast<std::size_t>(group.shape.n_kv_heads);
  std::size_t n_parts = group.n_parts;
  for (std::size_t n = n_parts + 1; n <= n_heads && max_pages(n_parts) < wanted; ++n) {
    if (n_heads % n == 0) n_parts = n;
  }
  const std::size_t n_pages = std::min(wanted, max_pages(n_parts));
  if (n_pages <= group.n_max) {
    throw Error("forward", "KV cache",
                fmt::format("at most {} tokens ({} allows {} bytes for {} of a layer)",
                            n_pages * kPageTokens, device_->facts().name, max_bytes,
                            n_parts == 1 ? "the head" : "each head"),
                "more");
  }
  ++generation_;
  group.moves = nullptr;
  if (n_parts != group.n_parts) {
    std::vector<Layer> layers;
    for (const Layer& layer : group.layers) {
      layers.push_back(larger(group, layer, n_parts, n_pages));
    }
    group.layers = std::move(layers);
    group.n_parts = n_parts;
  } else {
    for (Layer& layer : group.layers) {
      const bool is_done =
          !layer.empty() && layer.front()->n_bytes() >= n_pages * group.part_page_bytes();
      if (!is_done) layer = larger(group, layer, n_parts, n_pages);
    }
  }
  group.n_max = n_pages;
}

DevicePageStore::Layer DevicePageStore::larger(const Group& group, const Layer& layer,
                                               std::size_t n_parts, std::size_t n_pages) const {
  Layer larger;
  for (std::size_t part = 0; part < n_parts; ++part) {
    larger.push_back(device_->allocate(n_pages * (group.layer_bytes / n_parts)));
  }
  std::vector<std::byte> pages(group.n_pages * group.layer_bytes);
  if (!pages.empty()) {
    read_pages(group, layer, 0, pages);
    write_pages(group, larger, 0, pages);
  }
  return larger;
}

namespace {

// Copies between whole pages, in which all heads' keys precede all heads' values, and pages of a
// part of the heads.
template <typename Copy>
void for_each_piece(std::size_t n_pages, std::size_t layer_bytes, std::size_t n_parts,
                    std::size_t part, const Copy& copy) {
  const std::size_t half_bytes = layer_bytes / 2;  // keys, or values
  const std::size_t piece_bytes = half_bytes / n_parts;
  for (std::size_t half = 0; half < 2 * n_pages; ++half) {
    copy(half * half_bytes + part * piece_bytes, half * piece_bytes, piece_bytes);
  }
}

}  // namespace

void DevicePageStore::read_pages(const Group& group, const Layer& layer, std::size_t index,
                                 std::span<std::byte> pages) const {
  const std::size_t n_parts = layer.size();
  const std::size_t n_bytes = pages.size() / n_parts;
  const std::size_t at = index * (group.layer_bytes / n_parts);
  if (n_parts == 1) return device_->download({layer.front().get(), at, n_bytes}, pages);
  std::vector<std::byte> of_part(n_bytes);
  for (std::size_t part = 0; part < n_parts; ++part) {
    device_->download({layer[part].get(), at, n_bytes}, of_part);
    for_each_piece(pages.size() / group.layer_bytes, group.layer_bytes, n_parts, part,
                   [&](std::size_t in_page, std::size_t in_part, std::size_t n) {
                     std::memcpy(pages.data() + in_page, of_part.data() + in_part, n);
                   });
  }
}

void DevicePageStore::write_pages(const Group& group, const Layer& layer, std::size_t index,
                                  std::span<const std::byte> pages) const {
  const std::size_t n_parts = layer.size();
  const std::size_t n_bytes = pages.size() / n_parts;
  const std::size_t at = index * (group.layer_bytes / n_parts);
  if (n_parts == 1) return device_->upload(pages, {layer.front().get(), at, n_bytes});
  std::vector<std::byte> of_part(n_bytes);
  for (std::size_t part = 0; part < n_parts; ++part) {
    for_each_piece(pages.size() / group.layer_bytes, group.layer_bytes, n_parts, part,
                   [&](std::size_t in_page, std::size_t in_part, std::size_t n) {
                     std::memcpy(of_part.data() + in_part, pages.data() + in_page, n);
                   });
    device_->upload(of_part, {layer[part].get(), at, n_bytes});
  }
}

std::vector<device::Range> DevicePageStore::layer(int group, std::size_t index) const {
  std::vector<device::Range> parts;
  for (const auto& buffer : group_of(group).layers[index]) parts.push_back(whole(*buffer));
  return parts;
}

device::CacheShape DevicePageStore::part_shape(int group, std::size_t part) const {
  const Group& its = group_of(group);
  device::CacheShape shape = its.shape;
  if (its.n_parts == 1) return shape;
  shape.heads_of_row = shape.n_kv_heads;
  shape.n_kv_heads /= static_cast<int>(its.n_parts);
  shape.first_head = static_cast<int>(part) * shape.n_kv_heads;
  return shape;
}

void DevicePageStore::copy_first_slots(int group, PageId from, PageId to, int n) {
  std::vector<device::TokenMove> moves;
  for (int i = 0; i < n; ++i) {
    const auto token = static_cast<std::uint32_t>(i);
    moves.push_back({{page_at(from), token}, {page_at(to), token}});
  }
  move(group, moves);
}

void DevicePageStore::move_slots(const PageTable& table, std::span<const SlotMove> moves) {
  std::vector<device::TokenMove> of_tokens;
  const auto place = [&](int slot) {
    return device::TokenPlace{page_at(table.page_of(slot)),
                              static_cast<std::uint32_t>(slot % kPageTokens)};
  };
  for (const SlotMove& move : moves) of_tokens.push_back({place(move.from), place(move.to)});
  move(table.group(), of_tokens);
}

void DevicePageStore::prepare_moves(int group) {
  Group& its = group_of(group);
  if (its.moves != nullptr) return;
  const device::Rows rows = {{words_.get(), 0, device::kFacts * 4}, kMaxMoves};
  const device::Range of_moves = {words_.get(), kMovesAt, kWordBytes - kMovesAt};
  std::vector<device::Step> steps;
  for (const Layer& layer : its.layers) {
    for (std::size_t part = 0; part < layer.size(); ++part) {
      steps.push_back(
          device::move_slots(rows, part_shape(group, part), of_moves, whole(*layer[part])));
    }
  }
  its.moves = device_->record(steps);
}

void DevicePageStore::move(int group, std::span<const device::TokenMove> moves) {
  if (moves.empty()) return;
  prepare_moves(group);
  while (!moves.empty()) {
    const std::span<const device::TokenMove> some =
        moves.first(std::min<std::size_t>(moves.size(), kMaxMoves));
    moves = moves.subspan(some.size());
    device::FactWords facts{};
    facts[device::kFactRows] = static_cast<std::uint32_t>(some.size());
    std::memcpy(told_.data(), facts.data(), sizeof facts);
    std::memcpy(told_.data() + kMovesAt, some.data(), some.size_bytes());
    const std::size_t n_bytes = kMovesAt + some.size_bytes();
    device_->upload(std::span(told_).first(n_bytes), {words_.get(), 0, n_bytes});
    device_->submit(*group_of(group).moves);
  }
}

void DevicePageStore::read_first_slots(int group, PageId from, int n,
                                       std::span<std::byte> out) const {
  std::fill(out.begin(), out.end(), std::byte{0});
  const Group& its = group_of(group);
  const kernels::KvLayout layout = layout_of(its.shape);
  std::vector<std::byte> page(its.layer_bytes);
  std::byte* to = out.data();
  for (const Layer& layer : its.layers) {
    read_pages(its, layer, index_of(from), page);
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
    write_pages(its, its.layers[i], index_of(to),
                page.subspan(i * its.layer_bytes, its.layer_bytes));
  }
}

void DevicePageStore::clear_page(int group, PageId page) {
  const std::vector<std::byte> zeros(page_bytes(group));
  write_page(group, page, zeros);
}

}  // namespace outrider
