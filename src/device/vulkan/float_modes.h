// What a shader asks of a driver's float arithmetic (SPV_KHR_float_controls, in SPIR-V since 1.4).
// GLSL has no words for it, and a module may ask only for what a device has, so it is written into
// the code when a device is there.
#ifndef OUTRIDER_DEVICE_VULKAN_FLOAT_MODES_H_
#define OUTRIDER_DEVICE_VULKAN_FLOAT_MODES_H_

#include <cstdint>
#include <span>
#include <vector>

namespace outrider::device {

struct FloatModes {
  bool keeps_subnormals = false;
  bool keeps_infinities = false;  // and signs of zero, and NaN
  bool rounds_to_even = false;
};

// The module (words of SPIR-V 1.4 or newer, with one entry point) with these modes: of floats of 32
// bits and, where it has any, of 64. What is no such module comes back as it is.
std::vector<std::uint32_t> with_float_modes(std::span<const std::uint32_t> module,
                                            const FloatModes& modes,
                                            const FloatModes& double_modes);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_VULKAN_FLOAT_MODES_H_
