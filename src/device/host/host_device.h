// SPDX-License-Identifier: Apache-2.0
// The processor as a device: runs recorded steps by the kernel table `scalar`. Other devices are
// compared with it, and programs are tested on it where there is no other.
#ifndef OUTRIDER_DEVICE_HOST_HOST_DEVICE_H_
#define OUTRIDER_DEVICE_HOST_HOST_DEVICE_H_

#include <memory>
#include <vector>

#include "device/device.h"

namespace outrider::device {

class HostDevice : public Device {
 public:
  // The order of steps without a barrier between them: a real device may use any. Results must not
  // depend on it.
  enum class Order { as_recorded, reversed };

  explicit HostDevice(Order order = Order::as_recorded);

  const DeviceFacts& facts() const override { return facts_; }
  std::unique_ptr<Buffer> allocate(std::size_t n_bytes) override;
  void upload(std::span<const std::byte> from, const Range& to) override;
  void download(const Range& from, std::span<std::byte> to) override;
  std::unique_ptr<Program> record(std::span<const Step> steps) override;
  Ticket submit(const Program& program) override;
  void wait(Ticket) override {}

  // With given barriers, to test the effect of wrong ones.
  std::unique_ptr<Program> record_with(std::span<const Step> steps,
                                       std::vector<std::size_t> barriers);

 private:
  DeviceFacts facts_;
  Order order_;
  Ticket n_submitted_ = 0;
};

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_HOST_HOST_DEVICE_H_
