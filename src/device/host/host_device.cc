// SPDX-License-Identifier: Apache-2.0
#include "device/host/host_device.h"

#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

#include "device/barriers.h"
#include "device/host/host_kernels.h"
#include "outrider/error.h"

namespace outrider::device {
namespace {

class HostBuffer : public Buffer {
 public:
  explicit HostBuffer(std::size_t n_bytes) : Buffer(n_bytes), memory_(allocate(n_bytes)) {}

  std::byte* at(std::size_t offset) const { return memory_.get() + offset; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  static std::byte* allocate(std::size_t n_bytes) {
    if (n_bytes > std::numeric_limits<std::size_t>::max() - kRangeAlignment) throw std::bad_alloc();
    const std::size_t whole = (n_bytes + kRangeAlignment - 1) / kRangeAlignment * kRangeAlignment;
    void* const memory = std::aligned_alloc(kRangeAlignment, whole);
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<std::byte*>(memory);
  }

  std::unique_ptr<std::byte, Free> memory_;
};

std::byte* bytes_at(const Range& range) {
  return static_cast<const HostBuffer*>(range.buffer)->at(range.offset);
}

class HostProgram : public Program {
 public:
  HostProgram(std::span<const Step> steps, std::vector<std::size_t> barriers)
      : steps_(steps.begin(), steps.end()), barriers_(std::move(barriers)) {
    barriers_.push_back(steps_.size());
  }

  void run(HostDevice::Order order) const {
    std::size_t begin = 0;
    for (const std::size_t end : barriers_) {
      for (std::size_t i = begin; i < end; ++i) {
        const bool reversed = order == HostDevice::Order::reversed;
        const Step& step = steps_[reversed ? end - 1 - (i - begin) : i];
        std::vector<std::byte*> ranges;
        for (const Use& use : step.uses) ranges.push_back(bytes_at(use.range));
        run_on_host(step, ranges);
      }
      begin = end;
    }
  }

 private:
  std::vector<Step> steps_;
  std::vector<std::size_t> barriers_;  // and the end of the last step
};

}  // namespace

HostDevice::HostDevice(Order order) : order_(order) {
  facts_.name = "host";
  facts_.driver = "kernel table scalar";
  facts_.kind = DeviceKind::host;
  facts_.tier = "scalar";
  facts_.max_buffer_bytes = std::numeric_limits<std::ptrdiff_t>::max();
  facts_.max_groups = std::numeric_limits<std::uint32_t>::max();
}

std::unique_ptr<Buffer> HostDevice::allocate(std::size_t n_bytes) {
  try {
    return std::make_unique<HostBuffer>(n_bytes);
  } catch (const std::bad_alloc&) {
    throw NoDeviceMemory("allocate", facts_.name,
                         "memory for " + std::to_string(n_bytes) + " bytes", "none");
  }
}

void HostDevice::upload(std::span<const std::byte> from, const Range& to) {
  std::memcpy(bytes_at(to), from.data(), from.size());
}

void HostDevice::download(const Range& from, std::span<std::byte> to) {
  std::memcpy(to.data(), bytes_at(from), to.size());
}

std::unique_ptr<Program> HostDevice::record(std::span<const Step> steps) {
  return record_with(steps, derive_barriers(steps));
}

std::unique_ptr<Program> HostDevice::record_with(std::span<const Step> steps,
                                                 std::vector<std::size_t> barriers) {
  for (const Step& step : steps) require_sound(step, facts_);
  return std::make_unique<HostProgram>(steps, std::move(barriers));
}

Ticket HostDevice::submit(const Program& program) {
  static_cast<const HostProgram&>(program).run(order_);
  return ++n_submitted_;
}

}  // namespace outrider::device
