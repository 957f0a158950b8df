// SPDX-License-Identifier: Apache-2.0
// Devices by their vendors' data sheets. Figures are for dense products; if a sheet gives sparse
// ones, half of these. Every line names the sheet. The figures were compared with PyTorch's from
// the same sheets (torch/_inductor/analysis/device_info.py, torchtitan/tools/utils.py), where these
// have the device, and with a second table that names it. No sheet has the time to launch a pass.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "outrider/error.h"
#include "outrider/speed_plan.h"

namespace outrider {
namespace {

struct DataSheet {
  const char* name;
  const char* source;
  double bandwidth_gb;  // 1e9 bytes per second
  double bf16_tera;     // 1e12 operations per second
  double fp8_tera;      // 0: none
  double int8_tera;
};

constexpr DataSheet kSheets[] = {
    // nvidia.com/en-us/data-center/h200: 4.8 TB/s, sparse 1,979 and 3,958
    {"h200", "NVIDIA H200 data sheet (SXM)", 4800, 989.5, 1979, 1979},
    // resources.nvidia.com, nvidia-tensor-core-gpu-datasheet: 3.35 TB/s, sparse 1,979 and 3,958
    {"h100", "NVIDIA H100 data sheet (SXM)", 3350, 989.5, 1979, 1979},
    // nvidia-a100-datasheet-us-nvidia-1758950-r4: dense 312 and 624
    {"a100-80gb", "NVIDIA A100 data sheet (SXM, 80 GB)", 2039, 312, 0, 624},
    {"a100-40gb", "NVIDIA A100 data sheet (40 GB)", 1555, 312, 0, 624},
    // resources.nvidia.com, l40s-datasheet-28413: sparse 733 and 1,466
    {"l40s", "NVIDIA L40S data sheet", 864, 362, 733, 733},
    // resources.nvidia.com, l4-tensor-datasheet: sparse 242 and 485
    {"l4", "NVIDIA L4 data sheet", 300, 121, 242.5, 242.5},
    // a10-datasheet: dense 125 and 250
    {"a10", "NVIDIA A10 data sheet", 600, 125, 0, 250},
    // nvidia-a40-datasheet: dense 149.7 and 299.3
    {"a40", "NVIDIA A40 data sheet", 696, 149.7, 0, 299.3},
    // nvidia-ada-gpu-architecture (white paper): with f32 sums 165.2 and 330.3, int8 660.6, dense
    {"rtx-4090", "NVIDIA Ada white paper", 1008, 165.2, 330.3, 660.6},
    // amd-instinct-mi300x-data-sheet: dense
    {"mi300x", "AMD Instinct MI300X data sheet", 5300, 1307.4, 2614.9, 2614.9},
};

}  // namespace

std::vector<std::string> known_devices() {
  std::vector<std::string> names;
  for (const DataSheet& sheet : kSheets) names.emplace_back(sheet.name);
  return names;
}

Device find_device(std::string_view name) {
  for (const DataSheet& sheet : kSheets) {
    if (name != sheet.name) continue;
    Device device;
    device.name = sheet.name;
    device.source = sheet.source;
    device.bandwidth_bytes_per_second = sheet.bandwidth_gb * 1e9;
    device.bf16_ops_per_second = sheet.bf16_tera * 1e12;
    device.fp8_ops_per_second = sheet.fp8_tera * 1e12;
    device.int8_ops_per_second = sheet.int8_tera * 1e12;
    return device;
  }
  throw UsageError("plan speed", "device",
                   fmt::format("one of {}", fmt::join(known_devices(), ", ")),
                   name.empty() ? std::string("nothing") : std::string(name));
}

}  // namespace outrider
