// SPDX-License-Identifier: Apache-2.0
// A Vulkan layer between the loader and a driver that injects faults: it simulates drivers that
// compute wrongly, run out of memory or lose the device. The loader loads it if VK_LAYER_PATH and
// VK_INSTANCE_LAYERS name it (vulkan_faults.h sets them).
//
// The faults are listed in the file that OUTRIDER_FAULT_FILE names, and may change at any time:
//   no memory                        vkAllocateMemory finds none
//   lost at submit | lost at wait    the device is lost there
//   no barriers between              those between dispatches are not recorded
//   break WORD FROM TO               shaders with the word among their names get the operation TO
//                                    in the place of FROM (numbers of SPIR-V)
// Other words are ignored.
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace {

// The first word of every dispatchable handle: the same for an instance and its objects.
void* key_of(const void* handle) { return *static_cast<void* const*>(handle); }

struct Next {
  PFN_vkGetDeviceProcAddr find = nullptr;
  PFN_vkAllocateMemory allocate = nullptr;
  PFN_vkQueueSubmit submit = nullptr;
  PFN_vkWaitSemaphores wait = nullptr;
  PFN_vkCreateShaderModule create_shader = nullptr;
  PFN_vkCmdPipelineBarrier barrier = nullptr;
};

std::mutex mutex;  // of both
std::map<void*, PFN_vkGetInstanceProcAddr> instances;
std::map<void*, Next> devices;

Next next_of(const void* handle) {
  const std::lock_guard lock(mutex);
  return devices.at(key_of(handle));
}

std::string fault() {
  const char* const path = std::getenv("OUTRIDER_FAULT_FILE");
  std::string text;
  if (path != nullptr) std::getline(std::ifstream(path), text);
  return text;
}

VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device, const VkMemoryAllocateInfo* info,
                                               const VkAllocationCallbacks* callbacks,
                                               VkDeviceMemory* memory) {
  if (fault() == "no memory") return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return next_of(device).allocate(device, info, callbacks, memory);
}

VKAPI_ATTR VkResult VKAPI_CALL queue_submit(VkQueue queue, std::uint32_t n,
                                            const VkSubmitInfo* infos, VkFence fence) {
  if (fault() == "lost at submit") return VK_ERROR_DEVICE_LOST;
  return next_of(queue).submit(queue, n, infos, fence);
}

// After the real wait: the driver below has lost nothing, and the memory that it uses is freed
// next.
VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(VkDevice device, const VkSemaphoreWaitInfo* info,
                                               std::uint64_t timeout) {
  const VkResult result = next_of(device).wait(device, info, timeout);
  return fault() == "lost at wait" ? VK_ERROR_DEVICE_LOST : result;
}

bool has_name(const std::vector<std::uint32_t>& words, const std::string& name) {
  const std::string bytes(reinterpret_cast<const char*>(words.data()), words.size() * 4);
  return bytes.find(name) != std::string::npos;
}

VKAPI_ATTR VkResult VKAPI_CALL create_shader(VkDevice device, const VkShaderModuleCreateInfo* info,
                                             const VkAllocationCallbacks* callbacks,
                                             VkShaderModule* shader) {
  std::istringstream told(fault());
  std::string what;
  std::string name;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::vector<std::uint32_t> words(info->pCode, info->pCode + info->codeSize / 4);
  if (told >> what >> name >> from >> to && what == "break" && has_name(words, name)) {
    constexpr std::size_t kHeader = 5;
    for (std::size_t at = kHeader; at < words.size();) {
      const std::uint32_t length = words[at] >> 16;
      if ((words[at] & 0xffffU) == from) words[at] = length << 16 | to;
      at += std::max(length, 1U);
    }
  }
  VkShaderModuleCreateInfo changed = *info;
  changed.pCode = words.data();
  return next_of(device).create_shader(device, &changed, callbacks, shader);
}

std::atomic<int> n_barriers = 0;

VKAPI_ATTR void VKAPI_CALL pipeline_barrier(VkCommandBuffer commands, VkPipelineStageFlags before,
                                            VkPipelineStageFlags behind, VkDependencyFlags flags,
                                            std::uint32_t n_memory, const VkMemoryBarrier* memory,
                                            std::uint32_t n_buffers,
                                            const VkBufferMemoryBarrier* buffers,
                                            std::uint32_t n_images,
                                            const VkImageMemoryBarrier* images) {
  ++n_barriers;
  if (behind == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT && before == behind &&
      fault() == "no barriers between") {
    return;
  }
  next_of(commands).barrier(commands, before, behind, flags, n_memory, memory, n_buffers, buffers,
                            n_images, images);
}

// The loader's link to the next layer, which is advanced for that layer.
template <class Link>
Link* take_link(const void* chain, VkStructureType type) {
  for (auto* at = static_cast<const VkBaseInStructure*>(chain); at != nullptr; at = at->pNext) {
    if (at->sType != type) continue;
    auto* const link = const_cast<Link*>(reinterpret_cast<const Link*>(at));
    if (link->function == VK_LAYER_LINK_INFO) return link;
  }
  return nullptr;
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info,
                                               const VkAllocationCallbacks* callbacks,
                                               VkInstance* instance) {
  auto* const link = take_link<VkLayerInstanceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr find = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(find(VK_NULL_HANDLE, "vkCreateInstance"));
  const VkResult result = create(info, callbacks, instance);
  if (result != VK_SUCCESS) return result;
  const std::lock_guard lock(mutex);
  instances[key_of(*instance)] = find;
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* callbacks,
                                             VkDevice* device) {
  auto* const link =
      take_link<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr find = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const PFN_vkGetDeviceProcAddr find_of_device = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = reinterpret_cast<PFN_vkCreateDevice>(find(VK_NULL_HANDLE, "vkCreateDevice"));
  const VkResult result = create(physical, info, callbacks, device);
  if (result != VK_SUCCESS) return result;
  Next next;
  next.find = find_of_device;
  const auto find_in = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(find_of_device(*device, name));
  };
  find_in("vkAllocateMemory", next.allocate);
  find_in("vkQueueSubmit", next.submit);
  find_in("vkWaitSemaphores", next.wait);
  find_in("vkCreateShaderModule", next.create_shader);
  find_in("vkCmdPipelineBarrier", next.barrier);
  const std::lock_guard lock(mutex);
  devices[key_of(*device)] = next;
  return result;
}

PFN_vkVoidFunction own_function(const char* name);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_device_function(VkDevice device, const char* name) {
  const PFN_vkVoidFunction own = own_function(name);
  return own != nullptr ? own : next_of(device).find(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_instance_function(VkInstance instance,
                                                                const char* name) {
  if (const PFN_vkVoidFunction own = own_function(name)) return own;
  if (instance == VK_NULL_HANDLE) return nullptr;
  PFN_vkGetInstanceProcAddr find = nullptr;
  {
    const std::lock_guard lock(mutex);
    find = instances.at(key_of(instance));
  }
  return find(instance, name);
}

PFN_vkVoidFunction own_function(const char* name) {
  const std::string asked = name;
#define OUTRIDER_OWN(vulkan, own) \
  if (asked == (vulkan)) return reinterpret_cast<PFN_vkVoidFunction>(own)
  OUTRIDER_OWN("vkGetInstanceProcAddr", find_instance_function);
  OUTRIDER_OWN("vkGetDeviceProcAddr", find_device_function);
  OUTRIDER_OWN("vkCreateInstance", create_instance);
  OUTRIDER_OWN("vkCreateDevice", create_device);
  OUTRIDER_OWN("vkAllocateMemory", allocate_memory);
  OUTRIDER_OWN("vkQueueSubmit", queue_submit);
  OUTRIDER_OWN("vkWaitSemaphores", wait_semaphores);
  OUTRIDER_OWN("vkCreateShaderModule", create_shader);
  OUTRIDER_OWN("vkCmdPipelineBarrier", pipeline_barrier);
#undef OUTRIDER_OWN
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = find_instance_function;
  version->pfnGetDeviceProcAddr = find_device_function;
  version->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}

// The number of barriers recorded so far, in all devices.
extern "C" __attribute__((visibility("default"))) int outrider_fault_layer_barriers() {
  return n_barriers;
}
