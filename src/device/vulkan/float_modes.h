// SPDX-License-Identifier: Apache-2.0
// A shader's requirements for the driver's float arithmetic (SPV_KHR_float_controls, in SPIR-V
// since 1.4). GLSL cannot express them, and a module may require only what a device has. So they
// are written into the code once the device is known.
#ifndef OUTRIDER_DEVICE_VULKAN_FLOAT_MODES_H_
#define OUTRIDER_DEVICE_VULKAN_FLOAT_MODES_H_

#include <cstdint>
#include <span>
#include <vector>

namespace outrider::device {

struct FloatModes {
  bool keeps_subnormals = false;
  bool keeps_infinities = false;  // also signs of zero, and NaN
  bool rounds_to_even = false;
};

// Returns the module (words of SPIR-V 1.4 or newer, with one entry point) with these modes for
// 32-bit floats and, if it has any, 64-bit ones. Other inputs are returned unchanged.
std::vector<std::uint32_t> with_float_modes(std::span<const std::uint32_t> module,
                                            const FloatModes& modes,
                                            const FloatModes& double_modes);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_VULKAN_FLOAT_MODES_H_
