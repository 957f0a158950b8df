// SPDX-License-Identifier: Apache-2.0
// Devices run steps: the processor with the scalar kernels (host_device.h), or a GPU
// (vulkan/vulkan_device.h). They offer memory and recorded programs, and know nothing about models.
//
// A device that passes its check (check.h) produces the scalar table's bits.
//
// A device may be called by one thread at a time, unless it is shared (shared_device.h). Its
// buffers and programs must be destroyed before it.
#ifndef OUTRIDER_DEVICE_DEVICE_H_
#define OUTRIDER_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "device/step.h"

namespace outrider::device {

// software: a driver that computes on the processor. It is never chosen for a user.
enum class DeviceKind { host, discrete, integrated, virtual_gpu, software, other };

struct DeviceFacts {
  std::string name;
  std::string driver;  // with its version
  DeviceKind kind = DeviceKind::other;
  // The parts of its arithmetic that are used, in words.
  std::string tier;
  std::size_t memory_bytes = 0;  // of its largest heap; 0: unknown
  std::size_t max_buffer_bytes = 0;
  std::uint32_t max_groups = 0;  // the most workgroups along one axis of a step's grid
};

// Recorded steps with their barriers. They may be submitted any number of times.
class Program {
 public:
  virtual ~Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

 protected:
  Program() = default;
};

// Counts submissions, which end in order.
using Ticket = std::uint64_t;

class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual const DeviceFacts& facts() const = 0;

  // Why it cannot be used any more; empty: it can be used. Thread-safe.
  virtual std::string failure() const { return {}; }

  // n_bytes above 0. The contents are undefined. Throws Error beyond DeviceFacts::max_buffer_bytes,
  // and NoDeviceMemory if the device's memory is used up; the device is then unchanged.
  virtual std::unique_ptr<Buffer> allocate(std::size_t n_bytes) = 0;

  // Both wait for everything submitted before. `to` and `from` are as long as the span.
  virtual void upload(std::span<const std::byte> from, const Range& to) = 0;
  virtual void download(const Range& from, std::span<std::byte> to) = 0;

  // The buffers must outlive the program. Throws Error if require_sound (step.h) does.
  virtual std::unique_ptr<Program> record(std::span<const Step> steps) = 0;

  // Runs the program after everything submitted before, on the buffers' contents at that time.
  virtual Ticket submit(const Program& program) = 0;

  // Waits until the submission and all before it have ended. If the device is lost, this and all
  // later waits and submissions throw LostDevice.
  virtual void wait(Ticket ticket) = 0;

 protected:
  Device() = default;

 private:
  friend void require_known_answers(Device& device, std::span<const Step> steps);

  // Kernels that gave the known answers in this form. One thread at a time tries kernels.
  std::mutex trying_;
  std::set<std::pair<Kernel, std::uint32_t>> tried_;
};

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_DEVICE_H_
