// SPDX-License-Identifier: Apache-2.0
// A device that wraps another one. It counts the transferred bytes, and may have a lower limit for
// one allocation.
#ifndef OUTRIDER_TESTS_SUPPORT_WATCHED_DEVICE_H_
#define OUTRIDER_TESTS_SUPPORT_WATCHED_DEVICE_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "device/device.h"
#include "outrider/error.h"

namespace outrider::test {

class WatchedDevice final : public device::Device {
 public:
  // max_buffer_bytes: its limit for one allocation; 0: that of the wrapped device.
  explicit WatchedDevice(std::shared_ptr<device::Device> device, std::size_t max_buffer_bytes = 0)
      : device_(std::move(device)), facts_(device_->facts()) {
    if (max_buffer_bytes == 0) return;
    facts_.max_buffer_bytes = max_buffer_bytes;
    facts_.kind = device::DeviceKind::host;  // is not tried by trials, which need larger buffers
  }

  const device::DeviceFacts& facts() const override { return facts_; }
  std::string failure() const override { return device_->failure(); }
  std::unique_ptr<device::Buffer> allocate(std::size_t n_bytes) override {
    largest_ = std::max(largest_, n_bytes);
    if (n_bytes > facts_.max_buffer_bytes) {
      throw Error("allocate", facts_.name, "less", std::to_string(n_bytes));
    }
    return device_->allocate(n_bytes);
  }
  void upload(std::span<const std::byte> from, const device::Range& to) override {
    device_->upload(from, to);
  }
  void download(const device::Range& from, std::span<std::byte> to) override {
    n_downloaded_ += to.size();
    device_->download(from, to);
  }
  std::unique_ptr<device::Program> record(std::span<const device::Step> steps) override {
    return device_->record(steps);
  }
  device::Ticket submit(const device::Program& program) override {
    return device_->submit(program);
  }
  void wait(device::Ticket ticket) override { device_->wait(ticket); }

  // Bytes since the last call.
  std::size_t take_downloaded() { return std::exchange(n_downloaded_, 0); }
  // The largest requested allocation.
  std::size_t largest() const { return largest_; }

 private:
  std::shared_ptr<device::Device> device_;
  device::DeviceFacts facts_;
  std::size_t n_downloaded_ = 0;
  std::size_t largest_ = 0;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_WATCHED_DEVICE_H_
