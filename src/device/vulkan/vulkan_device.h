// SPDX-License-Identifier: Apache-2.0
// A Vulkan 1.2 device (device.h). Buffers are in the device's own memory. If the processor can map
// it, uploads and downloads are plain copies; otherwise they use a staging buffer.
#ifndef OUTRIDER_DEVICE_VULKAN_VULKAN_DEVICE_H_
#define OUTRIDER_DEVICE_VULKAN_VULKAN_DEVICE_H_

#include <cstddef>
#include <memory>

#include "device/device.h"
#include "device/vulkan/core.h"
#include "device/vulkan/pipelines.h"

namespace outrider::device {

// Restrictions on the features to use.
struct VulkanChoice {
  bool uses_dots = true;
  bool uses_double = true;
  bool uses_native_arithmetic = true;
  bool sees_memory = true;  // allows the processor's copies
};

class VulkanDevice : public Device {
 public:
  // The index-th device of the instance, with all arithmetic by integers: open_vulkan finds out
  // what else may be used. Throws Error if it cannot be opened.
  VulkanDevice(std::shared_ptr<VulkanInstance> instance, std::size_t index,
               const VulkanChoice& choice);
  ~VulkanDevice() override;

  const DeviceFacts& facts() const override { return facts_; }
  std::string failure() const override;
  std::unique_ptr<Buffer> allocate(std::size_t n_bytes) override;
  void upload(std::span<const std::byte> from, const Range& to) override;
  void download(const Range& from, std::span<std::byte> to) override;
  std::unique_ptr<Program> record(std::span<const Step> steps) override;
  Ticket submit(const Program& program) override;
  void wait(Ticket ticket) override;

  const VulkanMeans& means() const { return core_->physical().means; }
  const ArithmeticWays& ways() const { return pipelines_->ways(); }
  // For programs recorded from now on.
  void use(const ArithmeticWays& ways);

 private:
  class Transfer;

  std::shared_ptr<VulkanCore> core_;
  VulkanChoice choice_;
  DeviceFacts facts_;
  Owned<VkCommandPool> commands_;
  std::shared_ptr<Pipelines> pipelines_;  // programs keep those that they were recorded with
  std::unique_ptr<Transfer> transfer_;
};

// Opens a device and tests which of its native operations give the known answers; the others are
// computed from integers or doubles. DeviceFacts::tier describes the result.
std::unique_ptr<VulkanDevice> open_vulkan(std::shared_ptr<VulkanInstance> instance,
                                          std::size_t index, const VulkanChoice& choice = {});

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_VULKAN_VULKAN_DEVICE_H_
