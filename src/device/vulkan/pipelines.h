// SPDX-License-Identifier: Apache-2.0
// Compiled kernels of a Vulkan device, each made when it is first recorded.
#ifndef OUTRIDER_DEVICE_VULKAN_PIPELINES_H_
#define OUTRIDER_DEVICE_VULKAN_PIPELINES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "device/step.h"
#include "device/vulkan/core.h"

namespace outrider::device {

// How a device computes operations that Vulkan does not fully define (shaders/arithmetic.glsl).
enum class FusedWay : std::uint32_t { natively, by_double, by_integers };
struct ArithmeticWays {
  FusedWay fused = FusedWay::by_integers;
  bool divides_natively = false;
  bool roots_natively = false;
};

struct Pipeline {
  Owned<VkPipeline> pipeline;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
};

class Pipelines {
 public:
  Pipelines(std::shared_ptr<VulkanCore> core, const ArithmeticWays& ways);

  const ArithmeticWays& ways() const { return ways_; }
  // Throws Error if the driver refuses the kernel.
  const Pipeline& of(const Step& step);

 private:
  struct Layouts {
    Owned<VkDescriptorSetLayout> of_set;
    Owned<VkPipelineLayout> of_pipeline;
  };
  const Layouts& layouts_of(int n_uses);
  Pipeline make(const Step& step);

  std::shared_ptr<VulkanCore> core_;
  ArithmeticWays ways_;
  std::map<int, Layouts> layouts_;                                  // by number of uses
  std::map<std::pair<Kernel, std::uint32_t>, Pipeline> pipelines_;  // and Step::variant
};

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_VULKAN_PIPELINES_H_
