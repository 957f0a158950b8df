// SPDX-License-Identifier: Apache-2.0
// A logical device of Vulkan with its one queue, kept alive by everything made from it; and handles
// that destroy their objects.
#ifndef OUTRIDER_DEVICE_VULKAN_CORE_H_
#define OUTRIDER_DEVICE_VULKAN_CORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "device/device.h"
#include "device/vulkan/functions.h"
#include "device/vulkan/instance.h"

namespace outrider::device {

class VulkanCore {
 public:
  // uses_dots: whether to use the dot-product instruction, if the device has it.
  VulkanCore(std::shared_ptr<VulkanInstance> instance, const PhysicalDevice& physical,
             bool uses_dots);
  ~VulkanCore();
  VulkanCore(const VulkanCore&) = delete;
  VulkanCore& operator=(const VulkanCore&) = delete;

  const DeviceFunctions& vk() const { return vk_; }
  VkDevice handle() const { return handle_; }
  const PhysicalDevice& physical() const { return physical_; }
  const VulkanInstance& instance() const { return *instance_; }

  // Submits after everything submitted before. This and wait() throw LostDevice if the device is
  // lost.
  Ticket submit(VkCommandBuffer commands);
  void wait(Ticket ticket) const;
  void wait_for_all() const { wait(n_submitted_); }
  // For destructors: errors are reported by what comes next.
  void wait_quietly(Ticket ticket) const noexcept;
  Ticket last_ticket() const { return n_submitted_; }
  // Thread-safe; a lost device stays lost.
  bool is_lost() const { return lost_; }

 private:
  VkResult wait_until(Ticket ticket) const noexcept;
  void require_there(VkResult result, const char* operation) const;

  std::shared_ptr<VulkanInstance> instance_;
  PhysicalDevice physical_;
  VkDevice handle_ = VK_NULL_HANDLE;
  DeviceFunctions vk_;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkSemaphore ended_ = VK_NULL_HANDLE;  // counts the submissions that have ended
  Ticket n_submitted_ = 0;
  mutable std::atomic<bool> lost_ = false;
};

// A device's handle and the function that destroys it.
template <class Handle>
class Owned {
 public:
  using Destroy = void(VKAPI_PTR*)(VkDevice, Handle, const VkAllocationCallbacks*);

  Owned() = default;
  Owned(const VulkanCore& core, Destroy destroy) : device_(core.handle()), destroy_(destroy) {}
  Owned(Owned&& other) noexcept { *this = std::move(other); }
  Owned& operator=(Owned&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(destroy_, other.destroy_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != VK_NULL_HANDLE) destroy_(device_, handle_, nullptr);
  }

  Handle get() const { return handle_; }
  // For functions that create one. The handle must be empty.
  Handle* out() { return &handle_; }

 private:
  VkDevice device_ = VK_NULL_HANDLE;
  Destroy destroy_ = nullptr;
  Handle handle_ = VK_NULL_HANDLE;
};

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_VULKAN_CORE_H_
