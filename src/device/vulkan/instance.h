// SPDX-License-Identifier: Apache-2.0
// Vulkan on this machine: its drivers' devices, and those of their features that are used here.
#ifndef OUTRIDER_DEVICE_VULKAN_INSTANCE_H_
#define OUTRIDER_DEVICE_VULKAN_INSTANCE_H_

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/vulkan/float_modes.h"
#include "device/vulkan/functions.h"

namespace outrider::device {

// A device's features beyond those that Vulkan 1.2 requires.
struct VulkanMeans {
  bool has_double = false;
  bool has_dots = false;       // sums of byte products in one instruction
  bool dots_are_core = false;  // otherwise by VK_KHR_shader_integer_dot_product
  FloatModes modes;            // that a shader may require for 32-bit floats
  FloatModes double_modes;     // for 64-bit floats
};

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  DeviceFacts facts;  // without the tier
  std::uint32_t api_version = 0;
  VulkanMeans means;
  std::uint32_t queue_family = 0;
  VkDeviceSize max_allocation_bytes = 0;
  std::string refused;  // why it cannot be used; empty if it can
};

// A Vulkan instance and its devices. Shared by everything made from it.
class VulkanInstance {
 public:
  // validates: with Khronos' validation layer, whose messages are kept. Throws Error without a
  // loader, a driver, or that layer.
  static std::shared_ptr<VulkanInstance> create(bool validates = false);
  ~VulkanInstance();
  VulkanInstance(const VulkanInstance&) = delete;
  VulkanInstance& operator=(const VulkanInstance&) = delete;

  const InstanceFunctions& functions() const { return functions_; }
  // In the order of the loader.
  const std::vector<PhysicalDevice>& devices() const { return devices_; }
  // Warnings and errors of the validation layer so far.
  const std::vector<std::string>& messages() const { return messages_; }

 private:
  VulkanInstance() = default;
  void watch();

  VkInstance handle_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  InstanceFunctions functions_;
  std::vector<PhysicalDevice> devices_;
  std::vector<std::string> messages_;
};

// Whether the validation layer is installed.
bool has_validation_layer();

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_VULKAN_INSTANCE_H_
