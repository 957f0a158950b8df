// SPDX-License-Identifier: Apache-2.0
// A few steps on given bytes, run on any device. A device's check and the kernels' tests compare
// them between devices.
#ifndef OUTRIDER_DEVICE_TRIALS_TRIAL_H_
#define OUTRIDER_DEVICE_TRIALS_TRIAL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"

namespace outrider::device {

struct TrialBuffer {
  std::vector<std::byte> bytes;  // initial contents
  bool is_output = false;
  bool holds_floats = false;  // f32: any NaN equals any other
};

struct Trial {
  std::vector<TrialBuffer> buffers;
  // Ranges of all buffers, in order.
  std::function<std::vector<Step>(std::span<const Range>)> steps;

  // Each returns the buffer's index.
  template <class Element>
  std::size_t add_input(const std::vector<Element>& elements) {
    const auto bytes = std::as_bytes(std::span(elements));
    buffers.push_back({.bytes = {bytes.begin(), bytes.end()}});
    return buffers.size() - 1;
  }
  // Filled with bytes that no kernel writes, so that places which should not be written are
  // compared as well. As floats they are large: a kernel that reads them by mistake leaves other
  // bits.
  std::size_t add_output(std::size_t n_bytes, bool holds_floats) {
    buffers.push_back({.bytes = std::vector<std::byte>(n_bytes, std::byte{0x7e}),
                       .is_output = true,
                       .holds_floats = holds_floats});
    return buffers.size() - 1;
  }
};

// The buffers' contents after the steps; empty for those that are no outputs.
std::vector<std::vector<std::byte>> run_trial(Device& device, const Trial& trial);

// The first 32-bit word that differs between two results, as a message; empty if none does.
std::string difference(const Trial& trial, const std::vector<std::vector<std::byte>>& expected,
                       const std::vector<std::vector<std::byte>>& got);

// Runs the trial on the device and on the host (host_device.h), and returns their difference.
std::string difference_from_host(Device& device, const Trial& trial);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_TRIALS_TRIAL_H_
