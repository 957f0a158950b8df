// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include "outrider/error.h"

namespace outrider::device {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";
constexpr std::uint32_t kMinVersion = VK_API_VERSION_1_2;  // timeline semaphores, float controls

std::string version_text(std::uint32_t version) {
  return fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                     VK_API_VERSION_PATCH(version));
}

DeviceKind kind_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return DeviceKind::discrete;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return DeviceKind::integrated;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return DeviceKind::virtual_gpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return DeviceKind::software;
    default:
      return DeviceKind::other;
  }
}

bool has_extension(const InstanceFunctions& vk, VkPhysicalDevice device, const char* name) {
  std::uint32_t n = 0;
  vk.vkEnumerateDeviceExtensionProperties(device, nullptr, &n, nullptr);
  std::vector<VkExtensionProperties> all(n);
  vk.vkEnumerateDeviceExtensionProperties(device, nullptr, &n, all.data());
  return std::any_of(all.begin(), all.end(), [&](const VkExtensionProperties& one) {
    return std::strcmp(one.extensionName, name) == 0;
  });
}

// The queue family for compute; one without graphics, if there is one.
std::optional<std::uint32_t> queue_family_of(const InstanceFunctions& vk, VkPhysicalDevice device) {
  std::uint32_t n = 0;
  vk.vkGetPhysicalDeviceQueueFamilyProperties(device, &n, nullptr);
  std::vector<VkQueueFamilyProperties> all(n);
  vk.vkGetPhysicalDeviceQueueFamilyProperties(device, &n, all.data());
  std::optional<std::uint32_t> found;
  for (std::uint32_t i = 0; i < n; ++i) {
    if ((all[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    if ((all[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) == 0) return i;
    if (!found) found = i;
  }
  return found;
}

std::size_t largest_heap(const InstanceFunctions& vk, VkPhysicalDevice device) {
  VkPhysicalDeviceMemoryProperties memory{};
  vk.vkGetPhysicalDeviceMemoryProperties(device, &memory);
  VkDeviceSize largest = 0;
  for (std::uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) continue;
    largest = std::max(largest, memory.memoryHeaps[i].size);
  }
  return largest;
}

VulkanMeans means_of(const InstanceFunctions& vk, VkPhysicalDevice device,
                     std::uint32_t api_version,
                     const VkPhysicalDeviceFloatControlsProperties& floats) {
  VulkanMeans means;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dots{};
  dots.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
  means.dots_are_core = api_version >= VK_API_VERSION_1_3;
  const bool can_ask = means.dots_are_core ||
                       has_extension(vk, device, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  if (can_ask) features.pNext = &dots;
  vk.vkGetPhysicalDeviceFeatures2(device, &features);
  means.has_double = features.features.shaderFloat64 == VK_TRUE;
  means.has_dots = can_ask && dots.shaderIntegerDotProduct == VK_TRUE;
  means.modes = {.keeps_subnormals = floats.shaderDenormPreserveFloat32 == VK_TRUE,
                 .keeps_infinities = floats.shaderSignedZeroInfNanPreserveFloat32 == VK_TRUE,
                 .rounds_to_even = floats.shaderRoundingModeRTEFloat32 == VK_TRUE};
  means.double_modes = {.keeps_subnormals = floats.shaderDenormPreserveFloat64 == VK_TRUE,
                        .keeps_infinities = floats.shaderSignedZeroInfNanPreserveFloat64 == VK_TRUE,
                        .rounds_to_even = floats.shaderRoundingModeRTEFloat64 == VK_TRUE};
  return means;
}

PhysicalDevice describe(const InstanceFunctions& vk, VkPhysicalDevice handle) {
  VkPhysicalDeviceFloatControlsProperties floats{};
  floats.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
  VkPhysicalDeviceDriverProperties driver{};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  driver.pNext = &floats;
  VkPhysicalDeviceMaintenance3Properties allocations{};
  allocations.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  allocations.pNext = &driver;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &allocations;
  vk.vkGetPhysicalDeviceProperties2(handle, &properties);

  const VkPhysicalDeviceProperties& main = properties.properties;
  PhysicalDevice device;
  device.handle = handle;
  device.api_version = main.apiVersion;
  device.facts.name = main.deviceName;
  device.facts.kind = kind_of(main.deviceType);
  device.facts.driver =
      fmt::format("{}{}{}, Vulkan {}", driver.driverName, driver.driverInfo[0] != '\0' ? " " : "",
                  driver.driverInfo, version_text(main.apiVersion));
  device.facts.memory_bytes = largest_heap(vk, handle);
  device.max_allocation_bytes = allocations.maxMemoryAllocationSize;
  device.facts.max_buffer_bytes =
      std::min<std::size_t>(main.limits.maxStorageBufferRange, allocations.maxMemoryAllocationSize);
  device.facts.max_groups = *std::min_element(std::begin(main.limits.maxComputeWorkGroupCount),
                                              std::end(main.limits.maxComputeWorkGroupCount));
  if (main.apiVersion < kMinVersion) {
    device.refused = fmt::format("expected Vulkan {} or newer, got {}", version_text(kMinVersion),
                                 version_text(main.apiVersion));
    return device;
  }
  if (main.limits.maxPerStageDescriptorStorageBuffers < kMaxUses) {
    device.refused = fmt::format("expected kernels with {} buffers, got at most {}", kMaxUses,
                                 main.limits.maxPerStageDescriptorStorageBuffers);
    return device;
  }
  device.means = means_of(vk, handle, main.apiVersion, floats);
  const std::optional<std::uint32_t> family = queue_family_of(vk, handle);
  if (family) {
    device.queue_family = *family;
  } else {
    device.refused = "expected a queue for computing, got none";
  }
  return device;
}

VkBool32 VKAPI_CALL keep_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                 VkDebugUtilsMessageTypeFlagsEXT,
                                 const VkDebugUtilsMessengerCallbackDataEXT* data, void* messages) {
  static_cast<std::vector<std::string>*>(messages)->emplace_back(data->pMessage);
  return VK_FALSE;
}

}  // namespace

bool has_validation_layer() {
  const LoaderFunctions& loader = loader_functions();
  if (loader.vkEnumerateInstanceLayerProperties == nullptr) return false;
  std::uint32_t n = 0;
  loader.vkEnumerateInstanceLayerProperties(&n, nullptr);
  std::vector<VkLayerProperties> all(n);
  loader.vkEnumerateInstanceLayerProperties(&n, all.data());
  return std::any_of(all.begin(), all.end(), [](const VkLayerProperties& layer) {
    return std::strcmp(layer.layerName, kValidationLayer) == 0;
  });
}

std::shared_ptr<VulkanInstance> VulkanInstance::create(bool validates) {
  const LoaderFunctions& loader = loader_functions();
  if (loader.vkCreateInstance == nullptr || loader.vkEnumerateInstanceVersion == nullptr) {
    throw Error("start Vulkan", "loader", "libvulkan.so.1 of Vulkan 1.1 or newer", "none");
  }
  if (validates && !has_validation_layer()) {
    throw Error("start Vulkan", "layers", kValidationLayer, "none of that name");
  }
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "outrider";
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  // The layer also follows which dispatch reads and writes what, and reports missing barriers.
  const char* const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                                    VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  const VkValidationFeatureEnableEXT follows =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features{};
  features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = &follows;
  if (validates) {
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kValidationLayer;
    info.enabledExtensionCount = static_cast<std::uint32_t>(std::size(extensions));
    info.ppEnabledExtensionNames = extensions;
  }
  std::shared_ptr<VulkanInstance> instance(new VulkanInstance);
  require_success(loader.vkCreateInstance(&info, nullptr, &instance->handle_), "start Vulkan",
                  "instance");
  instance->functions_ = instance_functions(instance->handle_);
  if (validates) instance->watch();

  const InstanceFunctions& vk = instance->functions_;
  std::uint32_t n = 0;
  require_success(vk.vkEnumeratePhysicalDevices(instance->handle_, &n, nullptr), "start Vulkan",
                  "devices");
  std::vector<VkPhysicalDevice> handles(n);
  require_success(vk.vkEnumeratePhysicalDevices(instance->handle_, &n, handles.data()),
                  "start Vulkan", "devices");
  for (const VkPhysicalDevice handle : handles) {
    instance->devices_.push_back(describe(vk, handle));
  }
  return instance;
}

void VulkanInstance::watch() {
  VkDebugUtilsMessengerCreateInfoEXT info{};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                     VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  info.pfnUserCallback = keep_message;
  info.pUserData = &messages_;
  require_success(functions_.vkCreateDebugUtilsMessengerEXT(handle_, &info, nullptr, &messenger_),
                  "start Vulkan", "messages of the validation layer");
}

VulkanInstance::~VulkanInstance() {
  if (messenger_ != VK_NULL_HANDLE) {
    functions_.vkDestroyDebugUtilsMessengerEXT(handle_, messenger_, nullptr);
  }
  if (handle_ != VK_NULL_HANDLE && functions_.vkDestroyInstance != nullptr) {
    functions_.vkDestroyInstance(handle_, nullptr);
  }
}

}  // namespace outrider::device
