// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/core.h"

namespace outrider::device {

VulkanCore::VulkanCore(std::shared_ptr<VulkanInstance> instance, const PhysicalDevice& physical,
                       bool uses_dots)
    : instance_(std::move(instance)), physical_(physical) {
  physical_.means.has_dots = physical_.means.has_dots && uses_dots;
  const VulkanMeans& means = physical_.means;
  const float priority = 1.0F;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = physical_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;

  VkPhysicalDeviceShaderIntegerDotProductFeatures dots{};
  dots.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
  dots.shaderIntegerDotProduct = VK_TRUE;
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
  timeline.timelineSemaphore = VK_TRUE;
  if (means.has_dots) timeline.pNext = &dots;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.features.shaderFloat64 = means.has_double ? VK_TRUE : VK_FALSE;
  features.pNext = &timeline;

  const char* const extension = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  if (means.has_dots && !means.dots_are_core) {
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &extension;
  }
  const InstanceFunctions& of_instance = instance_->functions();
  require_success(of_instance.vkCreateDevice(physical_.handle, &info, nullptr, &handle_),
                  "open device", physical_.facts.name);
  vk_ = device_functions(of_instance, handle_);
  vk_.vkGetDeviceQueue(handle_, physical_.queue_family, 0, &queue_);

  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore{};
  semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore.pNext = &type;
  const VkResult result = vk_.vkCreateSemaphore(handle_, &semaphore, nullptr, &ended_);
  if (result != VK_SUCCESS) vk_.vkDestroyDevice(handle_, nullptr);
  require_success(result, "open device", physical_.facts.name);
}

VulkanCore::~VulkanCore() {
  vk_.vkDeviceWaitIdle(handle_);
  vk_.vkDestroySemaphore(handle_, ended_, nullptr);
  vk_.vkDestroyDevice(handle_, nullptr);
}

// After a driver has reported that the device is lost, its later calls may seem to succeed.
void VulkanCore::require_there(VkResult result, const char* operation) const {
  if (result == VK_ERROR_DEVICE_LOST) lost_ = true;
  require_success(lost_ ? VK_ERROR_DEVICE_LOST : result, operation, physical_.facts.name);
}

Ticket VulkanCore::submit(VkCommandBuffer commands) {
  require_there(VK_SUCCESS, "submit");
  const Ticket ticket = n_submitted_ + 1;
  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &ticket;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &values;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &ended_;
  require_there(vk_.vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "submit");
  n_submitted_ = ticket;
  return ticket;
}

VkResult VulkanCore::wait_until(Ticket ticket) const noexcept {
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &ended_;
  info.pValues = &ticket;
  return vk_.vkWaitSemaphores(handle_, &info, UINT64_MAX);
}

void VulkanCore::wait(Ticket ticket) const { require_there(wait_until(ticket), "wait"); }

void VulkanCore::wait_quietly(Ticket ticket) const noexcept {
  if (wait_until(ticket) == VK_ERROR_DEVICE_LOST) lost_ = true;
}

}  // namespace outrider::device
