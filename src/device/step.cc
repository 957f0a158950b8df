// SPDX-License-Identifier: Apache-2.0
#include "device/step.h"

#include <fmt/format.h>

#include "device/device.h"
#include "outrider/error.h"

namespace outrider::device {

const KernelFacts& facts_of(Kernel kernel) {
  static constexpr KernelFacts kFacts[kKernels] = {
      {"arithmetic", 4, false},         {"quantize_rows", 6, false},
      {"product_int8", 5, true},        {"product_int4", 6, true},
      {"rms_norm", 4, false},           {"norm_in_place", 3, false},
      {"apply_rope", 4, false},         {"gate", 4, false},
      {"add_rows", 3, false},           {"add_bias", 3, false},
      {"scale_rows", 2, false},         {"copy_rows", 4, false},
      {"best_of_rows", 3, false},       {"cap_rows", 2, false},
      {"layer_norm", 6, false},         {"activate", 2, false},
      {"store_rows", 5, false},         {"move_slots", 3, false},
      {"attend_f32", kMaxUses, false},  {"attend_bf16", kMaxUses, false},
      {"attend_int8", kMaxUses, false}, {"merge_splits", 5, false}};
  return kFacts[static_cast<int>(kernel)];
}

namespace {

void require_sound(const Use& use, const char* kernel) {
  const Range& range = use.range;
  if (range.buffer == nullptr || range.n_bytes == 0) {
    throw Error("record", kernel, "a range of a buffer", "an empty one");
  }
  if (range.offset % kRangeAlignment != 0) {
    throw Error("record", kernel, fmt::format("ranges that begin at {} bytes", kRangeAlignment),
                fmt::format("one at {}", range.offset));
  }
  if (range.offset > range.buffer->n_bytes() ||
      range.n_bytes > range.buffer->n_bytes() - range.offset) {
    throw Error("record", kernel,
                fmt::format("a range within a buffer of {} bytes", range.buffer->n_bytes()),
                fmt::format("{} bytes from {} on", range.n_bytes, range.offset));
  }
}

}  // namespace

void require_sound(const Step& step, const DeviceFacts& device) {
  const KernelFacts& kernel = facts_of(step.kernel);
  if (step.uses.size() != static_cast<std::size_t>(kernel.n_uses)) {
    throw Error("record", kernel.name, fmt::format("{} ranges", kernel.n_uses),
                fmt::format("{}", step.uses.size()));
  }
  for (std::size_t i = 0; i < step.uses.size(); ++i) {
    require_sound(step.uses[i], kernel.name);
    for (std::size_t j = 0; j < i; ++j) {
      const bool written = step.uses[i].writes() || step.uses[j].writes();
      if (written && step.uses[i].range.overlaps(step.uses[j].range)) {
        throw Error("record", kernel.name, "ranges apart from what is written", "two that overlap");
      }
    }
  }
  for (const std::uint32_t n : step.grid) {
    if (n > device.max_groups) {
      throw Error("record", kernel.name, fmt::format("at most {} workgroups", device.max_groups),
                  fmt::format("{}", n));
    }
  }
}

}  // namespace outrider::device
