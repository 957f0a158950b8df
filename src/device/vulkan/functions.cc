// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/functions.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "outrider/error.h"

namespace outrider::device {
namespace {

template <class Function>
void find_global(const LoaderFunctions& loader, const char* name, Function& function) {
  function = reinterpret_cast<Function>(loader.vkGetInstanceProcAddr(nullptr, name));
}

LoaderFunctions open_loader() {
  LoaderFunctions loader;
  void* library = nullptr;
  for (const char* name : {"libvulkan.so.1", "libvulkan.so", "libvulkan.1.dylib"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) return loader;
  loader.vkGetInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (loader.vkGetInstanceProcAddr == nullptr) return loader;
  find_global(loader, "vkCreateInstance", loader.vkCreateInstance);
  find_global(loader, "vkEnumerateInstanceVersion", loader.vkEnumerateInstanceVersion);
  find_global(loader, "vkEnumerateInstanceLayerProperties",
              loader.vkEnumerateInstanceLayerProperties);
  return loader;
}

const char* words_of(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "out of the machine's memory";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
      return "out of the device's memory";
    case VK_ERROR_DEVICE_LOST:
      return "the device was lost (its driver gave up on it)";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "the driver could not be started";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "no driver";
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "a layer is missing";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "an extension is missing";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "a feature is missing";
    case VK_ERROR_TOO_MANY_OBJECTS:
      return "too many allocations";
    default:
      return nullptr;
  }
}

}  // namespace

const LoaderFunctions& loader_functions() {
  static const LoaderFunctions loader = open_loader();
  return loader;
}

InstanceFunctions instance_functions(VkInstance instance) {
  const PFN_vkGetInstanceProcAddr find = loader_functions().vkGetInstanceProcAddr;
  InstanceFunctions functions;
#define OUTRIDER_FIND(name) functions.name = reinterpret_cast<PFN_##name>(find(instance, #name));
  OUTRIDER_INSTANCE_FUNCTIONS(OUTRIDER_FIND)
  OUTRIDER_FIND(vkCreateDebugUtilsMessengerEXT)
  OUTRIDER_FIND(vkDestroyDebugUtilsMessengerEXT)
#undef OUTRIDER_FIND
  return functions;
}

DeviceFunctions device_functions(const InstanceFunctions& instance, VkDevice device) {
  DeviceFunctions functions;
#define OUTRIDER_FIND(name) \
  functions.name = reinterpret_cast<PFN_##name>(instance.vkGetDeviceProcAddr(device, #name));
  OUTRIDER_DEVICE_FUNCTIONS(OUTRIDER_FIND)
#undef OUTRIDER_FIND
  return functions;
}

void require_success(VkResult result, const char* operation, const std::string& object) {
  if (result == VK_SUCCESS) return;
  const char* const known = words_of(result);
  const std::string words = known != nullptr
                                ? std::string(known)
                                : fmt::format("Vulkan gave the error {}", static_cast<int>(result));
  switch (result) {
    case VK_ERROR_DEVICE_LOST:
      throw LostDevice(operation, object, words);
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
      throw NoDeviceMemory(operation, object, words);
    default:
      throw Error(operation, object, words);
  }
}

}  // namespace outrider::device
