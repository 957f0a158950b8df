// SPDX-License-Identifier: Apache-2.0
#include "device/trials/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "device/host/host_device.h"

namespace outrider::device {
namespace {

bool is_nan(std::uint32_t bits) { return (bits & 0x7fffffffU) > 0x7f800000U; }

}  // namespace

std::vector<std::vector<std::byte>> run_trial(Device& device, const Trial& trial) {
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Range> ranges;
  for (const TrialBuffer& buffer : trial.buffers) {
    buffers.push_back(device.allocate(buffer.bytes.size()));
    ranges.push_back(whole(*buffers.back()));
    device.upload(buffer.bytes, ranges.back());
  }
  const std::unique_ptr<Program> program = device.record(trial.steps(ranges));
  device.wait(device.submit(*program));
  std::vector<std::vector<std::byte>> results(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!trial.buffers[i].is_output) continue;
    results[i].resize(buffers[i]->n_bytes());
    device.download(ranges[i], results[i]);
  }
  return results;
}

std::string difference(const Trial& trial, const std::vector<std::vector<std::byte>>& expected,
                       const std::vector<std::vector<std::byte>>& got) {
  constexpr std::size_t kWord = sizeof(std::uint32_t);
  for (std::size_t i = 0; i < trial.buffers.size(); ++i) {
    const std::size_t n_bytes = expected[i].size();
    for (std::size_t at = 0; at < n_bytes; at += kWord) {
      std::uint32_t want = 0;
      std::uint32_t have = 0;
      std::memcpy(&want, expected[i].data() + at, std::min(kWord, n_bytes - at));
      std::memcpy(&have, got[i].data() + at, std::min(kWord, n_bytes - at));
      if (want == have) continue;
      if (trial.buffers[i].holds_floats && is_nan(want) && is_nan(have)) continue;
      return fmt::format("word {} of {}: expected {:08x}, got {:08x}", at / kWord,
                         (n_bytes + kWord - 1) / kWord, want, have);
    }
  }
  return {};
}

std::string difference_from_host(Device& device, const Trial& trial) {
  HostDevice host;
  return difference(trial, run_trial(host, trial), run_trial(device, trial));
}

}  // namespace outrider::device
