// SPDX-License-Identifier: Apache-2.0
// The compiled shaders, which the build embeds (cmake/embed_shaders.cmake).
#ifndef OUTRIDER_DEVICE_VULKAN_SHADER_CODE_H_
#define OUTRIDER_DEVICE_VULKAN_SHADER_CODE_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace outrider::device {

struct ShaderCode {
  std::string_view kernel;  // KernelFacts::name
  bool uses_double;
  bool uses_dots;
  std::span<const std::uint32_t> words;  // SPIR-V
};

std::span<const ShaderCode> shader_codes();

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_VULKAN_SHADER_CODE_H_
