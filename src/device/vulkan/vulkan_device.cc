// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/vulkan_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "device/barriers.h"
#include "outrider/error.h"

namespace outrider::device {
namespace {

constexpr VkMemoryPropertyFlags kSeen =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kOwn = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;

// The size of the staging buffer for a device whose memory the processor cannot map: large enough
// that starting a copy costs little, and a small part of any memory.
constexpr std::size_t kStageBytes = std::size_t{8} << 20;

std::optional<std::uint32_t> memory_type(const VulkanCore& core, std::uint32_t allowed,
                                         VkMemoryPropertyFlags wanted) {
  VkPhysicalDeviceMemoryProperties memory{};
  core.instance().functions().vkGetPhysicalDeviceMemoryProperties(core.physical().handle, &memory);
  for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    if ((allowed >> i & 1U) == 0) continue;
    if ((memory.memoryTypes[i].propertyFlags & wanted) == wanted) return i;
  }
  return std::nullopt;
}

void add_barrier(const VulkanCore& core, VkCommandBuffer commands, VkPipelineStageFlags before,
                 VkAccessFlags made, VkPipelineStageFlags behind, VkAccessFlags seen) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = made;
  barrier.dstAccessMask = seen;
  core.vk().vkCmdPipelineBarrier(commands, before, behind, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

// A command buffer that returns to its pool.
class Commands {
 public:
  Commands(const VulkanCore& core, VkCommandPool pool) : core_(core), pool_(pool) {
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    require_success(core.vk().vkAllocateCommandBuffers(core.handle(), &info, &handle_), "record",
                    core.physical().facts.name);
  }
  ~Commands() { core_.vk().vkFreeCommandBuffers(core_.handle(), pool_, 1, &handle_); }
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  void begin(VkCommandBufferUsageFlags usage) const {
    VkCommandBufferBeginInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    info.flags = usage;
    require_success(core_.vk().vkBeginCommandBuffer(handle_, &info), "record",
                    core_.physical().facts.name);
  }
  void end() const {
    require_success(core_.vk().vkEndCommandBuffer(handle_), "record", core_.physical().facts.name);
  }
  VkCommandBuffer get() const { return handle_; }

 private:
  const VulkanCore& core_;
  VkCommandPool pool_;
  VkCommandBuffer handle_ = VK_NULL_HANDLE;
};

}  // namespace

class VulkanBuffer : public Buffer {
 public:
  // wanted: the memory's required properties; sees: whether the processor maps it.
  VulkanBuffer(std::shared_ptr<VulkanCore> core, std::size_t n_bytes, VkMemoryPropertyFlags wanted)
      : Buffer(n_bytes),
        core_(std::move(core)),
        memory_(*core_, core_->vk().vkFreeMemory),
        buffer_(*core_, core_->vk().vkDestroyBuffer) {
    const DeviceFunctions& vk = core_->vk();
    const std::string object = fmt::format("{} bytes of {}", n_bytes, core_->physical().facts.name);
    VkBufferCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = n_bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    require_success(vk.vkCreateBuffer(core_->handle(), &info, nullptr, buffer_.out()), "allocate",
                    object);
    VkMemoryRequirements needs{};
    vk.vkGetBufferMemoryRequirements(core_->handle(), buffer_.get(), &needs);
    std::optional<std::uint32_t> type = memory_type(*core_, needs.memoryTypeBits, wanted);
    if (!type) type = memory_type(*core_, needs.memoryTypeBits, wanted & ~kOwn);
    if (!type) throw Error("allocate", object, "memory of the kind that is needed", "none");
    VkMemoryAllocateInfo allocation{};
    allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    allocation.allocationSize = needs.size;
    allocation.memoryTypeIndex = *type;
    require_success(vk.vkAllocateMemory(core_->handle(), &allocation, nullptr, memory_.out()),
                    "allocate", object);
    require_success(vk.vkBindBufferMemory(core_->handle(), buffer_.get(), memory_.get(), 0),
                    "allocate", object);
    if ((wanted & kSeen) == kSeen) {
      void* seen = nullptr;
      require_success(vk.vkMapMemory(core_->handle(), memory_.get(), 0, VK_WHOLE_SIZE, 0, &seen),
                      "allocate", object);
      seen_ = static_cast<std::byte*>(seen);
    }
  }
  // Submitted commands may still use it.
  ~VulkanBuffer() override { core_->wait_quietly(core_->last_ticket()); }

  VkBuffer handle() const { return buffer_.get(); }
  // The processor's mapping; null if there is none.
  std::byte* seen() const { return seen_; }

 private:
  std::shared_ptr<VulkanCore> core_;
  Owned<VkDeviceMemory> memory_;
  Owned<VkBuffer> buffer_;  // destroyed before its memory
  std::byte* seen_ = nullptr;
};

namespace {

const VulkanBuffer& buffer_of(const Range& range) {
  return static_cast<const VulkanBuffer&>(*range.buffer);
}

class VulkanProgram : public Program {
 public:
  VulkanProgram(std::shared_ptr<VulkanCore> core, std::shared_ptr<Pipelines> pipelines,
                VkCommandPool pool, std::span<const Step> steps)
      : core_(std::move(core)),
        pipelines_(std::move(pipelines)),
        sets_(*core_, core_->vk().vkDestroyDescriptorPool),
        commands_(*core_, pool) {
    make_room_for_sets(steps);
    const std::vector<std::size_t> barriers = derive_barriers(steps);
    commands_.begin(VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
    add_barrier(*core_, commands_.get(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                VK_ACCESS_MEMORY_WRITE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, kShaderAccess);
    auto barrier = barriers.begin();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (barrier != barriers.end() && *barrier == i) {
        add_barrier(*core_, commands_.get(), VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                    VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                    kShaderAccess);
        ++barrier;
      }
      add(steps[i]);
    }
    add_barrier(*core_, commands_.get(), VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                VK_ACCESS_SHADER_WRITE_BIT,
                VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                VK_ACCESS_HOST_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT);
    commands_.end();
  }
  ~VulkanProgram() override { core_->wait_quietly(last_); }

  Ticket submit() const { return last_ = core_->submit(commands_.get()); }

 private:
  static constexpr VkAccessFlags kShaderAccess =
      VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;

  void make_room_for_sets(std::span<const Step> steps) {
    std::size_t n_uses = 0;
    for (const Step& step : steps) n_uses += step.uses.size();
    if (n_uses == 0) return;
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                       static_cast<std::uint32_t>(n_uses)};
    VkDescriptorPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    info.maxSets = static_cast<std::uint32_t>(steps.size());
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    require_success(
        core_->vk().vkCreateDescriptorPool(core_->handle(), &info, nullptr, sets_.out()), "record",
        core_->physical().facts.name);
  }

  VkDescriptorSet set_of(const Step& step, VkDescriptorSetLayout layout) {
    VkDescriptorSetAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    info.descriptorPool = sets_.get();
    info.descriptorSetCount = 1;
    info.pSetLayouts = &layout;
    VkDescriptorSet set = VK_NULL_HANDLE;
    require_success(core_->vk().vkAllocateDescriptorSets(core_->handle(), &info, &set), "record",
                    core_->physical().facts.name);
    std::vector<VkDescriptorBufferInfo> ranges;
    for (const Use& use : step.uses) {
      ranges.push_back({buffer_of(use.range).handle(), use.range.offset, use.range.n_bytes});
    }
    std::vector<VkWriteDescriptorSet> writes(ranges.size());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
      writes[i].dstSet = set;
      writes[i].dstBinding = static_cast<std::uint32_t>(i);
      writes[i].descriptorCount = 1;
      writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      writes[i].pBufferInfo = &ranges[i];
    }
    core_->vk().vkUpdateDescriptorSets(core_->handle(), static_cast<std::uint32_t>(writes.size()),
                                       writes.data(), 0, nullptr);
    return set;
  }

  void add(const Step& step) {
    const DeviceFunctions& vk = core_->vk();
    const Pipeline& pipeline = pipelines_->of(step);
    const VkDescriptorSet set = set_of(step, pipeline.set_layout);
    vk.vkCmdBindPipeline(commands_.get(), VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.pipeline.get());
    vk.vkCmdBindDescriptorSets(commands_.get(), VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0,
                               1, &set, 0, nullptr);
    vk.vkCmdPushConstants(commands_.get(), pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                          sizeof step.numbers, step.numbers.data());
    vk.vkCmdDispatch(commands_.get(), step.grid[0], step.grid[1], step.grid[2]);
  }

  std::shared_ptr<VulkanCore> core_;
  std::shared_ptr<Pipelines> pipelines_;
  Owned<VkDescriptorPool> sets_;
  Commands commands_;
  mutable Ticket last_ = 0;
};

}  // namespace

// Copies through the staging buffer.
class VulkanDevice::Transfer {
 public:
  Transfer(std::shared_ptr<VulkanCore> core, VkCommandPool pool)
      : core_(std::move(core)), pool_(pool) {}

  void upload(std::span<const std::byte> from, const Range& to) {
    for (std::size_t at = 0; at < from.size(); at += kStageBytes) {
      const std::size_t n = std::min(kStageBytes, from.size() - at);
      std::memcpy(stage().seen(), from.data() + at, n);
      copy(stage().handle(), 0, buffer_of(to).handle(), to.offset + at, n);
    }
  }
  void download(const Range& from, std::span<std::byte> to) {
    for (std::size_t at = 0; at < to.size(); at += kStageBytes) {
      const std::size_t n = std::min(kStageBytes, to.size() - at);
      copy(buffer_of(from).handle(), from.offset + at, stage().handle(), 0, n);
      std::memcpy(to.data() + at, stage().seen(), n);
    }
  }

 private:
  const VulkanBuffer& stage() {
    if (!stage_) stage_ = std::make_unique<VulkanBuffer>(core_, kStageBytes, kSeen);
    return *stage_;
  }

  void copy(VkBuffer from, std::size_t from_at, VkBuffer to, std::size_t to_at, std::size_t n) {
    const Commands commands(*core_, pool_);
    commands.begin(VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
    add_barrier(*core_, commands.get(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                VK_ACCESS_MEMORY_WRITE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
    const VkBufferCopy region = {from_at, to_at, n};
    core_->vk().vkCmdCopyBuffer(commands.get(), from, to, 1, &region);
    add_barrier(*core_, commands.get(), VK_PIPELINE_STAGE_TRANSFER_BIT,
                VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    commands.end();
    core_->wait(core_->submit(commands.get()));
  }

  std::shared_ptr<VulkanCore> core_;
  VkCommandPool pool_;
  std::unique_ptr<VulkanBuffer> stage_;
};

namespace {

std::shared_ptr<VulkanCore> open_core(std::shared_ptr<VulkanInstance> instance, std::size_t index,
                                      const VulkanChoice& choice) {
  if (index >= instance->devices().size()) {
    throw Error("open device", fmt::format("vulkan:{}", index),
                fmt::format("one of {} devices", instance->devices().size()), "none of them");
  }
  const PhysicalDevice& physical = instance->devices()[index];
  if (!physical.refused.empty()) throw Error("open device", physical.facts.name, physical.refused);
  return std::make_shared<VulkanCore>(std::move(instance), physical, choice.uses_dots);
}

}  // namespace

VulkanDevice::VulkanDevice(std::shared_ptr<VulkanInstance> instance, std::size_t index,
                           const VulkanChoice& choice)
    : core_(open_core(std::move(instance), index, choice)),
      choice_(choice),
      facts_(core_->physical().facts),
      commands_(*core_, core_->vk().vkDestroyCommandPool) {
  VkCommandPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  info.queueFamilyIndex = core_->physical().queue_family;
  require_success(core_->vk().vkCreateCommandPool(core_->handle(), &info, nullptr, commands_.out()),
                  "open device", facts_.name);
  transfer_ = std::make_unique<Transfer>(core_, commands_.get());
  use({});
}

VulkanDevice::~VulkanDevice() { core_->wait_quietly(core_->last_ticket()); }

void VulkanDevice::use(const ArithmeticWays& ways) {
  pipelines_ = std::make_shared<Pipelines>(core_, ways);
  constexpr const char* kFused[] = {"fma of the driver", "fma by double", "fma by integers"};
  facts_.tier =
      fmt::format("{}, {}, {}, {}", means().has_dots ? "dots of bytes" : "plain words",
                  kFused[static_cast<int>(ways.fused)],
                  ways.divides_natively ? "division of the driver" : "division by integers",
                  ways.roots_natively ? "root of the driver" : "root by integers");
}

std::string VulkanDevice::failure() const {
  return core_->is_lost() ? facts_.name + " was lost (its driver gave up on it)" : std::string();
}

std::unique_ptr<Buffer> VulkanDevice::allocate(std::size_t n_bytes) {
  if (n_bytes == 0 || n_bytes > facts_.max_buffer_bytes) {
    throw Error("allocate", facts_.name,
                fmt::format("a buffer of 1 to {} bytes", facts_.max_buffer_bytes),
                fmt::format("{}", n_bytes));
  }
  // On such devices all memory is also the processor's.
  const bool shared = facts_.kind == DeviceKind::integrated || facts_.kind == DeviceKind::software;
  const VkMemoryPropertyFlags wanted = shared && choice_.sees_memory ? kOwn | kSeen : kOwn;
  return std::make_unique<VulkanBuffer>(core_, n_bytes, wanted);
}

void VulkanDevice::upload(std::span<const std::byte> from, const Range& to) {
  core_->wait_for_all();
  if (std::byte* const seen = buffer_of(to).seen()) {
    std::memcpy(seen + to.offset, from.data(), from.size());
  } else {
    transfer_->upload(from, to);
  }
}

void VulkanDevice::download(const Range& from, std::span<std::byte> to) {
  core_->wait_for_all();
  if (const std::byte* const seen = buffer_of(from).seen()) {
    std::memcpy(to.data(), seen + from.offset, to.size());
  } else {
    transfer_->download(from, to);
  }
}

std::unique_ptr<Program> VulkanDevice::record(std::span<const Step> steps) {
  for (const Step& step : steps) require_sound(step, facts_);
  return std::make_unique<VulkanProgram>(core_, pipelines_, commands_.get(), steps);
}

Ticket VulkanDevice::submit(const Program& program) {
  return static_cast<const VulkanProgram&>(program).submit();
}

void VulkanDevice::wait(Ticket ticket) { core_->wait(ticket); }

}  // namespace outrider::device
