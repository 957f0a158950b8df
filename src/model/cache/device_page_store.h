// The bytes of pages in a device's memory.
//
// For each layer of a group, the keys and values of all pages are contiguous in a separate buffer,
// so that a step of one layer touches only that layer's memory. A buffer grows by doubling; it
// holds as many pages as the device allows for one allocation.
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
  void move_slots(const PageTable& table, std::span<const SlotMove> moves) override;

  // Allocates the group's first pages if it has none: layer() needs some.
  void begin(int group) {
    if (group_of(group).n_most == 0) grow(group_of(group));
  }
  // The pages of a group's index-th layer, and the offset of a page there, in words.
  device::Range layer(int group, std::size_t index) const;
  std::uint32_t page_at(PageId page) const { return places_[static_cast<std::size_t>(page)]; }
  // Changes whenever layer() may return other buffers.
  std::uint64_t generation() const { return generation_; }

 private:
  struct Group {
    device::CacheShape shape;
    std::size_t layer_bytes;  // of a page
    std::size_t n_pages = 0;  // in use or given back
    std::size_t n_most = 0;   // capacity of the buffers
    std::vector<std::unique_ptr<device::Buffer>> layers;
    std::unique_ptr<device::Program> moves;  // one for all layers
  };

  Group& group_of(int group) { return groups_[static_cast<std::size_t>(group)]; }
  const Group& group_of(int group) const { return groups_[static_cast<std::size_t>(group)]; }
  std::size_t bytes_at(PageId page) const { return std::size_t{page_at(page)} * 4; }
  void grow(Group& group);
  void move(Group& group, std::span<const device::TokenMove> moves);

  std::shared_ptr<device::Device> device_;  // outlives the buffers
  std::vector<Group> groups_;
  std::vector<std::uint32_t> places_;      // by page, in words; kNowhere: not provided
  std::unique_ptr<device::Buffer> words_;  // the arguments of a program of moves
  std::vector<std::byte> told_;            // its copy on the host, for the upload
  std::uint64_t generation_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_DEVICE_PAGE_STORE_H_
