// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/entries.h"

#include <fmt/format.h>

#include "device/cuda/kernels/entries.cuh"
#include "outrider/error.h"

namespace outrider::device::cuda {

static_assert(kMaxRanges == static_cast<std::uint32_t>(kMaxUses));
static_assert(kMaxWords == kMaxNumbers);
static_assert(kChunk == static_cast<std::uint32_t>(kernels::kChunkKeys));
static_assert(kSplit == static_cast<std::uint32_t>(kernels::kSplitKeys));
static_assert(kColumns == static_cast<std::uint32_t>(kernels::kTileColumns));
static_assert(kElementsOfGroup == static_cast<std::uint32_t>(kernels::kGroup));

std::span<const Entry> entries() {
#define OUTRIDER_ENTRY(name, kernel, variant, n_threads, body) \
  {"outrider_" #name, Kernel::kernel, variant, n_threads,      \
   [](const StepArguments& step) { (body)(step); }},
  static constexpr Entry kEntries[] = {OUTRIDER_CUDA_ENTRIES(OUTRIDER_ENTRY)};
#undef OUTRIDER_ENTRY
  return kEntries;
}

std::size_t entry_of(const Step& step) {
  const std::span<const Entry> all = entries();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].kernel != step.kernel) continue;
    if (all[i].variant == kAnyVariant || all[i].variant == step.variant) return i;
  }
  throw Error("record", facts_of(step.kernel).name, "a variant that CUDA has",
              fmt::format("{}", step.variant));
}

}  // namespace outrider::device::cuda
