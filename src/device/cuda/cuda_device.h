// SPDX-License-Identifier: Apache-2.0
// A device behind NVIDIA's driver API (device.h). One stream; a program is a graph that was
// captured on it, one launch behind another, so that no barriers are needed.
#ifndef OUTRIDER_DEVICE_CUDA_CUDA_DEVICE_H_
#define OUTRIDER_DEVICE_CUDA_CUDA_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/cubins.h"
#include "device/cuda/driver.h"
#include "device/device.h"

namespace outrider::device::cuda {

// Of a driver's index-th device, without opening it. Throws Error where the driver does.
DeviceFacts facts_of(const Driver& driver, int index);
int n_devices(const Driver& driver);
// The first device that one of the cubins is for; no device is opened. Throws Error where there is
// none: with one device, why it is not.
int first_usable_device(const Driver& driver, std::span<const Cubin> cubins);

class CudaDevice : public Device {
 public:
  // Throws Error where the device cannot be opened, or none of the cubins is for it. The driver
  // must live as long.
  CudaDevice(const Driver& driver, int index, std::span<const Cubin> cubins);
  ~CudaDevice() override;

  const DeviceFacts& facts() const override { return facts_; }
  std::string failure() const override;
  std::unique_ptr<Buffer> allocate(std::size_t n_bytes) override;
  void upload(std::span<const std::byte> from, const Range& to) override;
  void download(const Range& from, std::span<std::byte> to) override;
  std::unique_ptr<Program> record(std::span<const Step> steps) override;
  Ticket submit(const Program& program) override;
  void wait(Ticket ticket) override;

 private:
  class Core;  // what buffers and programs keep alive

  std::shared_ptr<Core> core_;
  DeviceFacts facts_;
  friend class CudaBuffer;
  friend class CudaProgram;
};

}  // namespace outrider::device::cuda

#endif  // OUTRIDER_DEVICE_CUDA_CUDA_DEVICE_H_
