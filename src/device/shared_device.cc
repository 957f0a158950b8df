// SPDX-License-Identifier: Apache-2.0
#include "device/shared_device.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace outrider::device {
namespace {

// Lives as long as the device or one of its buffers or programs.
struct Shared {
  explicit Shared(std::unique_ptr<Device> its) : device(std::move(its)) {}

  std::mutex mutex;
  std::unique_ptr<Device> device;
};

// A buffer or a program of the device.
template <class Thing>
class Held {
 public:
  Held(std::shared_ptr<Shared> shared, std::unique_ptr<Thing> thing)
      : shared_(std::move(shared)), thing_(std::move(thing)) {}
  ~Held() {
    const std::lock_guard lock(shared_->mutex);
    thing_ = nullptr;
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  const Thing& operator*() const { return *thing_; }

 private:
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Thing> thing_;
};

class SharedBuffer final : public Buffer {
 public:
  SharedBuffer(std::shared_ptr<Shared> shared, std::unique_ptr<Buffer> buffer)
      : Buffer(buffer->n_bytes()), buffer_(std::move(shared), std::move(buffer)) {}

  const Buffer& own() const { return *buffer_; }

 private:
  Held<Buffer> buffer_;
};

class SharedProgram final : public Program {
 public:
  SharedProgram(std::shared_ptr<Shared> shared, std::unique_ptr<Program> program)
      : program_(std::move(shared), std::move(program)) {}

  const Program& own() const { return *program_; }

 private:
  Held<Program> program_;
};

Range own(const Range& range) {
  return {&static_cast<const SharedBuffer&>(*range.buffer).own(), range.offset, range.n_bytes};
}

class SharedDevice final : public Device {
 public:
  explicit SharedDevice(std::unique_ptr<Device> device)
      : shared_(std::make_shared<Shared>(std::move(device))) {}

  const DeviceFacts& facts() const override { return shared_->device->facts(); }
  std::string failure() const override { return shared_->device->failure(); }
  std::unique_ptr<Buffer> allocate(std::size_t n_bytes) override {
    const std::lock_guard lock(shared_->mutex);
    return std::make_unique<SharedBuffer>(shared_, shared_->device->allocate(n_bytes));
  }
  void upload(std::span<const std::byte> from, const Range& to) override {
    const std::lock_guard lock(shared_->mutex);
    shared_->device->upload(from, own(to));
  }
  void download(const Range& from, std::span<std::byte> to) override {
    const std::lock_guard lock(shared_->mutex);
    shared_->device->download(own(from), to);
  }
  std::unique_ptr<Program> record(std::span<const Step> steps) override {
    std::vector<Step> its(steps.begin(), steps.end());
    for (Step& step : its) {
      for (Use& use : step.uses) use.range = own(use.range);
    }
    const std::lock_guard lock(shared_->mutex);
    return std::make_unique<SharedProgram>(shared_, shared_->device->record(its));
  }
  Ticket submit(const Program& program) override {
    const std::lock_guard lock(shared_->mutex);
    return shared_->device->submit(static_cast<const SharedProgram&>(program).own());
  }
  void wait(Ticket ticket) override {
    const std::lock_guard lock(shared_->mutex);
    shared_->device->wait(ticket);
  }

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace

std::shared_ptr<Device> share(std::unique_ptr<Device> device) {
  return std::make_shared<SharedDevice>(std::move(device));
}

std::shared_ptr<Device> SharedDevices::get(const std::string& name, const Open& open) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<Device>& known = devices_[name];
  std::shared_ptr<Device> device = known.lock();
  if (device == nullptr || !device->failure().empty()) {
    device = share(open());
    known = device;
  }
  return device;
}

}  // namespace outrider::device
