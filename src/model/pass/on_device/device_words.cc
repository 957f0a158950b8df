// SPDX-License-Identifier: Apache-2.0
#include "model/pass/on_device/device_words.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <variant>

#include "model/pass/on_cpu/rope_angles.h"

namespace outrider {
namespace {

constexpr int kMinSlots = 64;

int power_of_two_from(int n) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(n, 1))));
}

template <typename Word>
void put(std::vector<std::byte>& bytes, std::size_t at, std::size_t index, const Word& word) {
  std::memcpy(bytes.data() + at + index * sizeof word, &word, sizeof word);
}

}  // namespace

// For nodes that may be out of place, counts all positions after the kept tokens.
DevicePassShape DevicePassShape::of(const PassPlan& plan) {
  int n_slots = kMinSlots;
  for (const PassRow& row : plan.rows()) {
    const int depth = row.position - row.sequence->n_kept();
    if (row.node != depth) n_slots += depth + 1;
  }
  return {.max_rows = power_of_two_from(plan.n_rows()),
          .max_asked = power_of_two_from(plan.n_asked()),
          .max_pages = power_of_two_from(static_cast<int>(pages_of(plan.n_slots()))),
          .max_slots = power_of_two_from(n_slots)};
}

DeviceWords::DeviceWords(const PassList& list, const KvCache& cache, const DevicePassShape& shape)
    : shape_(shape) {
  const auto max_rows = static_cast<std::size_t>(shape.max_rows);
  facts_ = add(device::kFacts);
  asked_facts_ = add(device::kFacts);
  asked_ = add(static_cast<std::size_t>(shape.max_asked));
  for (const Op& op : list.ops) {
    const auto* const attend = std::get_if<op::Attend>(&op.what);
    if (attend == nullptr) continue;
    const int window = attend->attention->window;
    const bool is_known = std::any_of(windows_.begin(), windows_.end(),
                                      [&](const OfWindow& its) { return its.window == window; });
    if (!is_known) windows_.push_back({window, add(max_rows * 4)});
  }
  for (const CacheGroup& group : cache.groups()) {
    groups_.push_back({.cache_layer = group.layers.front(),
                       .pages = add(max_rows * static_cast<std::size_t>(shape.max_pages)),
                       .places = add(max_rows * 2)});
  }
  for (const RopeTable& rope : list.ropes) {
    const std::size_t half = rope.frequencies.size();
    ropes_.push_back(
        {.half = half, .cosines = add(max_rows * half), .sines = add(max_rows * half)});
  }
  slots_ = add(static_cast<std::size_t>(shape.max_slots));
}

DeviceWords::Place DeviceWords::add(std::size_t n_words) {
  const Place place = {n_bytes_, n_words * sizeof(std::uint32_t)};
  constexpr std::size_t kAlignment = device::kRangeAlignment;
  n_bytes_ += (place.n_bytes + kAlignment - 1) / kAlignment * kAlignment;
  return place;
}

const DeviceWords::OfWindow& DeviceWords::of_window(int window) const {
  return *std::find_if(windows_.begin(), windows_.end(),
                       [&](const OfWindow& its) { return its.window == window; });
}

device::Rows DeviceWords::rows(const device::Buffer& buffer) const {
  return {facts_.in(buffer), shape_.max_rows};
}
device::Rows DeviceWords::asked_rows(const device::Buffer& buffer) const {
  return {asked_facts_.in(buffer), shape_.max_asked};
}
device::Range DeviceWords::asked(const device::Buffer& buffer) const { return asked_.in(buffer); }
device::Range DeviceWords::attend_rows(const device::Buffer& buffer, int window) const {
  return of_window(window).rows.in(buffer);
}
device::Range DeviceWords::slots(const device::Buffer& buffer) const { return slots_.in(buffer); }
device::Range DeviceWords::pages(const device::Buffer& buffer, int group) const {
  return groups_[static_cast<std::size_t>(group)].pages.in(buffer);
}
device::Range DeviceWords::places(const device::Buffer& buffer, int group) const {
  return groups_[static_cast<std::size_t>(group)].places.in(buffer);
}
device::Range DeviceWords::cosines(const device::Buffer& buffer, int rope) const {
  return ropes_[static_cast<std::size_t>(rope)].cosines.in(buffer);
}
device::Range DeviceWords::sines(const device::Buffer& buffer, int rope) const {
  return ropes_[static_cast<std::size_t>(rope)].sines.in(buffer);
}

void DeviceWords::write(const PassPlan& plan, const PassList& list, const DevicePageStore& store,
                        std::vector<std::byte>& bytes) const {
  if (bytes.size() < n_bytes_) bytes.resize(n_bytes_);
  put(bytes, facts_.at, device::kFactRows, static_cast<std::uint32_t>(plan.n_rows()));
  put(bytes, asked_facts_.at, device::kFactRows, static_cast<std::uint32_t>(plan.n_asked()));
  for (std::size_t i = 0; i < plan.asked().size(); ++i) {
    put(bytes, asked_.at, i, static_cast<std::uint32_t>(plan.asked()[i]));
  }
  std::vector<int> others;
  std::size_t n_slots = 0;
  for (std::size_t i = 0; i < plan.rows().size(); ++i) {
    const PassRow& row = plan.rows()[i];
    const int n_contiguous = row.sequence->n_contiguous(row.node);
    for (const OfWindow& its : windows_) {
      const int first = its.window == 0 ? 0 : std::max(row.position + 1 - its.window, 0);
      put(bytes, its.rows.at, i,
          device::AttendRowWords{.n_keys = static_cast<std::uint32_t>(row.n_keys),
                                 .first_key = static_cast<std::uint32_t>(first),
                                 .n_contiguous = static_cast<std::uint32_t>(n_contiguous),
                                 .slots_at = static_cast<std::uint32_t>(n_slots)});
    }
    others.resize(static_cast<std::size_t>(row.n_keys - n_contiguous));
    if (!others.empty()) row.sequence->scattered_slots(row.node, others);
    for (const int slot : others)
      put(bytes, slots_.at, n_slots++, static_cast<std::uint32_t>(slot));
    const int slot = row.sequence->n_kept() + row.node;
    for (const OfGroup& its : groups_) {
      const auto max_pages = static_cast<std::size_t>(shape_.max_pages);
      const std::size_t n_pages = std::min(row.sequence->n_pages(its.cache_layer), max_pages);
      for (std::size_t page = 0; page < n_pages; ++page) {
        const PageId id = row.sequence->page(its.cache_layer, page);
        // Dropped by a window: nothing reads it.
        const std::uint32_t at = id == kNoPage ? 0 : store.page_at(id);
        put(bytes, its.pages.at, i * max_pages + page, at);
      }
      const PageId own =
          row.sequence->page(its.cache_layer, static_cast<std::size_t>(slot / kPageTokens));
      put(bytes, its.places.at, i,
          device::TokenPlace{store.page_at(own), static_cast<std::uint32_t>(slot % kPageTokens)});
    }
    for (std::size_t rope = 0; rope < ropes_.size(); ++rope) {
      const OfRope& its = ropes_[rope];
      const std::size_t at = i * its.half * sizeof(float);
      rope_angles(list.ropes[rope], row,
                  reinterpret_cast<float*>(bytes.data() + its.cosines.at + at),
                  reinterpret_cast<float*>(bytes.data() + its.sines.at + at));
    }
  }
}

}  // namespace outrider
