// SPDX-License-Identifier: Apache-2.0
// The Vulkan loader, opened when first needed: the program is not linked to it and runs without it.
#ifndef OUTRIDER_DEVICE_VULKAN_FUNCTIONS_H_
#define OUTRIDER_DEVICE_VULKAN_FUNCTIONS_H_

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <string>

namespace outrider::device {

// Members have the names that Vulkan gives the functions.
// NOLINTBEGIN(readability-identifier-naming)

// Functions of the loader itself, needed before an instance; all null without a loader.
struct LoaderFunctions {
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
  PFN_vkCreateInstance vkCreateInstance = nullptr;
  PFN_vkEnumerateInstanceVersion vkEnumerateInstanceVersion = nullptr;
  PFN_vkEnumerateInstanceLayerProperties vkEnumerateInstanceLayerProperties = nullptr;
};

// This machine's loader, opened once per process and kept.
const LoaderFunctions& loader_functions();

#define OUTRIDER_INSTANCE_FUNCTIONS(F)        \
  F(vkDestroyInstance)                        \
  F(vkEnumeratePhysicalDevices)               \
  F(vkGetPhysicalDeviceProperties2)           \
  F(vkGetPhysicalDeviceFeatures2)             \
  F(vkGetPhysicalDeviceMemoryProperties)      \
  F(vkGetPhysicalDeviceQueueFamilyProperties) \
  F(vkEnumerateDeviceExtensionProperties)     \
  F(vkCreateDevice)                           \
  F(vkGetDeviceProcAddr)

struct InstanceFunctions {
#define OUTRIDER_DECLARE(name) PFN_##name name = nullptr;
  OUTRIDER_INSTANCE_FUNCTIONS(OUTRIDER_DECLARE)
  // From VK_EXT_debug_utils; null without it.
  PFN_vkCreateDebugUtilsMessengerEXT vkCreateDebugUtilsMessengerEXT = nullptr;
  PFN_vkDestroyDebugUtilsMessengerEXT vkDestroyDebugUtilsMessengerEXT = nullptr;
};
InstanceFunctions instance_functions(VkInstance instance);

#define OUTRIDER_DEVICE_FUNCTIONS(F) \
  F(vkDestroyDevice)                 \
  F(vkGetDeviceQueue)                \
  F(vkQueueSubmit)                   \
  F(vkDeviceWaitIdle)                \
  F(vkCreateBuffer)                  \
  F(vkDestroyBuffer)                 \
  F(vkGetBufferMemoryRequirements)   \
  F(vkAllocateMemory)                \
  F(vkFreeMemory)                    \
  F(vkBindBufferMemory)              \
  F(vkMapMemory)                     \
  F(vkCreateShaderModule)            \
  F(vkDestroyShaderModule)           \
  F(vkCreateDescriptorSetLayout)     \
  F(vkDestroyDescriptorSetLayout)    \
  F(vkCreatePipelineLayout)          \
  F(vkDestroyPipelineLayout)         \
  F(vkCreateComputePipelines)        \
  F(vkDestroyPipeline)               \
  F(vkCreateDescriptorPool)          \
  F(vkDestroyDescriptorPool)         \
  F(vkAllocateDescriptorSets)        \
  F(vkUpdateDescriptorSets)          \
  F(vkCreateCommandPool)             \
  F(vkDestroyCommandPool)            \
  F(vkAllocateCommandBuffers)        \
  F(vkFreeCommandBuffers)            \
  F(vkBeginCommandBuffer)            \
  F(vkEndCommandBuffer)              \
  F(vkCmdBindPipeline)               \
  F(vkCmdBindDescriptorSets)         \
  F(vkCmdPushConstants)              \
  F(vkCmdDispatch)                   \
  F(vkCmdPipelineBarrier)            \
  F(vkCmdCopyBuffer)                 \
  F(vkCreateSemaphore)               \
  F(vkDestroySemaphore)              \
  F(vkWaitSemaphores)

struct DeviceFunctions {
  OUTRIDER_DEVICE_FUNCTIONS(OUTRIDER_DECLARE)
#undef OUTRIDER_DECLARE
};
// NOLINTEND(readability-identifier-naming)

DeviceFunctions device_functions(const InstanceFunctions& instance, VkDevice device);

// Throws Error unless the result is VK_SUCCESS; the message names the operation and its object.
// Throws LostDevice or NoDeviceMemory for these results.
void require_success(VkResult result, const char* operation, const std::string& object);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_VULKAN_FUNCTIONS_H_
