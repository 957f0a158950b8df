// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/pipelines.h"

#include <cstddef>
#include <vector>

#include "device/vulkan/shader_code.h"
#include "outrider/error.h"

namespace outrider::device {
namespace {

// Values of the shaders' constant_id 0 to 3.
struct Constants {
  std::uint32_t variant;
  std::uint32_t fused;
  VkBool32 divides_natively;
  VkBool32 roots_natively;
};
constexpr VkSpecializationMapEntry kEntries[] = {
    {0, offsetof(Constants, variant), sizeof(std::uint32_t)},
    {1, offsetof(Constants, fused), sizeof(std::uint32_t)},
    {2, offsetof(Constants, divides_natively), sizeof(VkBool32)},
    {3, offsetof(Constants, roots_natively), sizeof(VkBool32)}};

const ShaderCode& code_of(const KernelFacts& kernel, bool uses_double, bool has_dots) {
  for (const ShaderCode& code : shader_codes()) {
    if (code.kernel == kernel.name && code.uses_double == uses_double &&
        code.uses_dots == (has_dots && kernel.has_dots)) {
      return code;
    }
  }
  throw Error("record", kernel.name, "a shader in this build", "none");
}

}  // namespace

Pipelines::Pipelines(std::shared_ptr<VulkanCore> core, const ArithmeticWays& ways)
    : core_(std::move(core)), ways_(ways) {}

const Pipeline& Pipelines::of(const Step& step) {
  const std::pair key(step.kernel, step.variant);
  const auto found = pipelines_.find(key);
  if (found != pipelines_.end()) return found->second;
  return pipelines_.emplace(key, make(step)).first->second;
}

const Pipelines::Layouts& Pipelines::layouts_of(int n_uses) {
  const auto found = layouts_.find(n_uses);
  if (found != layouts_.end()) return found->second;
  const DeviceFunctions& vk = core_->vk();
  const std::string& name = core_->physical().facts.name;
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  bindings.reserve(static_cast<std::size_t>(n_uses));
  for (int i = 0; i < n_uses; ++i) {
    bindings.push_back({static_cast<std::uint32_t>(i), VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                        VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  }
  Layouts layouts{.of_set = {*core_, vk.vkDestroyDescriptorSetLayout},
                  .of_pipeline = {*core_, vk.vkDestroyPipelineLayout}};
  VkDescriptorSetLayoutCreateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = static_cast<std::uint32_t>(bindings.size());
  set.pBindings = bindings.data();
  require_success(
      vk.vkCreateDescriptorSetLayout(core_->handle(), &set, nullptr, layouts.of_set.out()),
      "record", name);
  const VkPushConstantRange numbers = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(Step::numbers)};
  const VkDescriptorSetLayout of_set = layouts.of_set.get();
  VkPipelineLayoutCreateInfo pipeline{};
  pipeline.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  pipeline.setLayoutCount = 1;
  pipeline.pSetLayouts = &of_set;
  pipeline.pushConstantRangeCount = 1;
  pipeline.pPushConstantRanges = &numbers;
  require_success(
      vk.vkCreatePipelineLayout(core_->handle(), &pipeline, nullptr, layouts.of_pipeline.out()),
      "record", name);
  return layouts_.emplace(n_uses, std::move(layouts)).first->second;
}

Pipeline Pipelines::make(const Step& step) {
  const DeviceFunctions& vk = core_->vk();
  const VulkanMeans& means = core_->physical().means;
  const KernelFacts& kernel = facts_of(step.kernel);
  const Layouts& layouts = layouts_of(kernel.n_uses);
  const ShaderCode& code = code_of(kernel, ways_.fused == FusedWay::by_double, means.has_dots);
  const std::vector<std::uint32_t> words =
      with_float_modes(code.words, means.modes, means.double_modes);

  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = words.size() * sizeof(std::uint32_t);
  module_info.pCode = words.data();
  Owned<VkShaderModule> shader(*core_, vk.vkDestroyShaderModule);
  require_success(vk.vkCreateShaderModule(core_->handle(), &module_info, nullptr, shader.out()),
                  "compile", kernel.name);

  const Constants constants = {step.variant, static_cast<std::uint32_t>(ways_.fused),
                               ways_.divides_natively ? VK_TRUE : VK_FALSE,
                               ways_.roots_natively ? VK_TRUE : VK_FALSE};
  const VkSpecializationInfo special = {std::size(kEntries), kEntries, sizeof constants,
                                        &constants};
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = shader.get();
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &special;
  info.layout = layouts.of_pipeline.get();
  Pipeline made{.pipeline = {*core_, vk.vkDestroyPipeline},
                .layout = layouts.of_pipeline.get(),
                .set_layout = layouts.of_set.get()};
  require_success(vk.vkCreateComputePipelines(core_->handle(), VK_NULL_HANDLE, 1, &info, nullptr,
                                              made.pipeline.out()),
                  "compile", kernel.name);
  return made;
}

}  // namespace outrider::device
