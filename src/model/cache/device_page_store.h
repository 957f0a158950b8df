// SPDX-License-Identifier: Apache-2.0
// The bytes of pages in a device's memory.
//
// For each layer of a group, the keys and values of all pages are contiguous in a separate buffer,
// so that a step of one layer touches only that layer's memory. A buffer grows by doubling. If the
// device's limit for one allocation is exceeded, a layer's heads are split evenly over more
// buffers, down to one head for each.
//
// Supports only groups with keys and values of their own. Pages are never freed: memory that a page
// gives back is reused by the group's next page.
#ifndef OUTRIDER_MODEL_CACHE_DEVICE_PAGE_STORE_H_
#define OUTRIDER_MODEL_CACHE_DEVICE_PAGE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/cache_steps.h"
#include "device/device.h"
#include "model/cache/cache_group.h"
#include "model/cache/page_store.h"

namespace outrider {

class DevicePageStore final : public PageStore {
 public:
  // Throws Error for groups that it does not support.
  DevicePageStore(std::shared_ptr<device::Device> device, std::span<const CacheGroup> groups);

  void provide(PageId page, int group) override;
  void give_back(PageId /*page*/, int /*group*/) override {}
  void copy_first_slots(int group, PageId from, PageId to, int n) override;
  void read_first_slots(int group, PageId from, int n, std::span<std::byte> out) const override;
  void write_page(int group, PageId to, std::span<const std::byte> page) override;
  std::size_t page_bytes(int group) const override;
  void clear_page(int group, PageId page) override;
  void prepare_moves(int group) override;
  void move_slots(const PageTable& table, std::span<const SlotMove> moves) override;

  // Allocates the group's first pages if it has none: layer() needs some.
  void begin(int group) {
    if (group_of(group).n_max == 0) grow(group_of(group));
  }
  // The pages of a group's index-th layer: a range for the first heads, one for the next, and so
  // on. part_shape() is the layout of a page in one of them.
  std::vector<device::Range> layer(int group, std::size_t index) const;
  device::CacheShape part_shape(int group, std::size_t part) const;
  // The offset of a page in each of these ranges, in words.
  std::uint32_t page_at(PageId page) const {
    const Place& place = places_[static_cast<std::size_t>(page)];
    return place.index * groups_[place.group].part_page_words();
  }
  // Changes whenever layer() may return other buffers, or pages have other offsets.
  std::uint64_t generation() const { return generation_; }

 private:
  using Layer = std::vector<std::unique_ptr<device::Buffer>>;  // one for each part
  struct Group {
    device::CacheShape shape;
    std::size_t layer_bytes;  // of a page
    std::size_t n_pages = 0;  // in use or given back
    std::size_t n_max = 0;    // capacity of the buffers
    std::size_t n_parts = 1;  // of each layer, a divisor of the number of heads
    std::vector<Layer> layers;
    std::unique_ptr<device::Program> moves;  // of all layers

    std::size_t part_page_bytes() const { return layer_bytes / n_parts; }
    std::uint32_t part_page_words() const {
      return static_cast<std::uint32_t>(part_page_bytes() / sizeof(std::uint32_t));
    }
  };
  // The place of a page in the buffers of its group.
  struct Place {
    std::uint32_t index;
    std::uint32_t group;
  };

  Group& group_of(int group) { return groups_[static_cast<std::size_t>(group)]; }
  const Group& group_of(int group) const { return groups_[static_cast<std::size_t>(group)]; }
  std::size_t index_of(PageId page) const { return places_[static_cast<std::size_t>(page)].index; }
  // Reads pages of a layer from the index-th on, (n, layer_bytes), from all of its parts.
  void read_pages(const Group& group, const Layer& layer, std::size_t index,
                  std::span<std::byte> pages) const;
  void write_pages(const Group& group, const Layer& layer, std::size_t index,
                   std::span<const std::byte> pages) const;
  Layer larger(const Group& group, const Layer& layer, std::size_t n_parts,
               std::size_t n_pages) const;
  void grow(Group& group);
  void move(int group, std::span<const device::TokenMove> moves);

  std::shared_ptr<device::Device> device_;  // outlives the buffers
  std::vector<Group> groups_;
  std::vector<Place> places_;              // by page; kNowhere: not provided
  std::unique_ptr<device::Buffer> words_;  // the arguments of a program of moves
  std::vector<std::byte> told_;            // its copy on the host, for the upload
  std::uint64_t generation_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_DEVICE_PAGE_STORE_H_
