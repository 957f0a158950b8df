// A device behind Vulkan 1.2 (device.h). Its memory is the device's own; where the processor sees
// that, uploads and downloads are copies by the processor, else they go through a buffer of its.
#ifndef OUTRIDER_DEVICE_VULKAN_VULKAN_DEVICE_H_
#define OUTRIDER_DEVICE_VULKAN_VULKAN_DEVICE_H_

#include <cstddef>
#include <memory>

#include "device/device.h"
#include "device/vulkan/core.h"
#include "device/vulkan/pipelines.h"

namespace outrider::device {

// What a device is used with, where it is not to be all that it has.
struct VulkanChoice {
  bool uses_dots = true;
  bool uses_double = true;
  bool uses_native_arithmetic = true;
  bool sees_memory = true;  // the processor's copies
};

class VulkanDevice : public Device {
 public:
  // The index-th device of the instance, with all arithmetic made of integers: open_vulkan finds
  // out what else may be used. Throws Error where it cannot be opened.
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
  // Of programs recorded from now on.
  void use(const ArithmeticWays& ways);

 private:
  class Transfer;

  std::shared_ptr<VulkanCore> core_;
  VulkanChoice choice_;
  DeviceFacts facts_;
  Owned<VkCommandPool> commands_;
  std::shared_ptr<Pipelines> pipelines_;  // programs keep those they were recorded with
  std::unique_ptr<Transfer> transfer_;
};

// Opens a device and tries which arithmetic of its own gives the known answers: the rest is made of
// what does. DeviceFacts::tier says what came of it.
std::unique_ptr<VulkanDevice> open_vulkan(std::shared_ptr<VulkanInstance> instance,
                                          std::size_t index, const VulkanChoice& choice = {});

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_VULKAN_VULKAN_DEVICE_H_
