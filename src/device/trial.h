// A few steps on given bytes, run on any device: what a device's check and the tests of kernels
// compare between devices.
#ifndef OUTRIDER_DEVICE_TRIAL_H_
#define OUTRIDER_DEVICE_TRIAL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"

namespace outrider::device {

struct TrialBuffer {
  std::vector<std::byte> bytes;  // at first
  bool is_output = false;
  bool holds_floats = false;  // f32: any NaN is as good as another
};

struct Trial {
  std::vector<TrialBuffer> buffers;
  std::function<std::vector<Step>(std::span<const Range>)> steps;  // of all buffers, in order

  // Each gives the buffer's index.
  template <class Element>
  std::size_t add_input(const std::vector<Element>& elements) {
    const auto bytes = std::as_bytes(std::span(elements));
    buffers.push_back({.bytes = {bytes.begin(), bytes.end()}});
    return buffers.size() - 1;
  }
  // Filled with what no kernel leaves, so that places which should not be written are compared,
  // too.
  std::size_t add_output(std::size_t n_bytes, bool holds_floats) {
    buffers.push_back({.bytes = std::vector<std::byte>(n_bytes, std::byte{0xa5}),
                       .is_output = true,
                       .holds_floats = holds_floats});
    return buffers.size() - 1;
  }
};

// What the buffers hold behind the steps; of those that are no outputs nothing.
std::vector<std::vector<std::byte>> run_trial(Device& device, const Trial& trial);

// Of two results, the first 32-bit word that differs, in words for a message; empty where none
// does.
std::string difference(const Trial& trial, const std::vector<std::vector<std::byte>>& expected,
                       const std::vector<std::vector<std::byte>>& got);

// run_trial here and on the host (host_device.h), and their difference.
std::string difference_from_host(Device& device, const Trial& trial);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_TRIAL_H_
