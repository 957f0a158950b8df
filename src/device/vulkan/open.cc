// SPDX-License-Identifier: Apache-2.0
// Chooses the arithmetic with which a device is used.
#include <utility>

#include "device/trials/check.h"
#include "device/vulkan/vulkan_device.h"

namespace outrider::device {

std::unique_ptr<VulkanDevice> open_vulkan(std::shared_ptr<VulkanInstance> instance,
                                          std::size_t index, const VulkanChoice& choice) {
  auto device = std::make_unique<VulkanDevice>(std::move(instance), index, choice);
  ArithmeticWays ways;
  if (choice.uses_native_arithmetic) {
    ways.divides_natively = gives_known_answers(*device, Function::native_divide);
    ways.roots_natively = gives_known_answers(*device, Function::native_root);
    if (gives_known_answers(*device, Function::native_fused)) ways.fused = FusedWay::natively;
  }
  if (ways.fused != FusedWay::natively && choice.uses_double && device->means().has_double) {
    ways.fused = FusedWay::by_double;
    device->use(ways);
    if (!gives_known_answers(*device, Function::fused)) ways.fused = FusedWay::by_integers;
  }
  device->use(ways);
  return device;
}

}  // namespace outrider::device
