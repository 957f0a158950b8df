// SPDX-License-Identifier: Apache-2.0
// Devices that several users share: they are opened once, take one call at a time, and are not
// given to others once they are lost.
#include "device/shared_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/host/host_device.h"
#include "device/kernel_steps.h"
#include "device/open_device.h"
#include "device/trials/check.h"
#include "device/trials/known_answers.h"
#include "device/trials/row_trials.h"
#include "outrider/error.h"
#include "tests/support/faulty_device.h"

namespace outrider::device {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

void on_threads(int n, const std::function<void()>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedDevices, OpenANameOnceAsLongAsItIsInUse) {
  SharedDevices devices;
  int n_opened = 0;
  const auto open = [&] {
    ++n_opened;
    return std::make_unique<HostDevice>();
  };
  auto first = devices.get("a", open);
  EXPECT_EQ(devices.get("a", open), first);
  EXPECT_EQ(n_opened, 1);
  EXPECT_NE(devices.get("b", open), first);
  EXPECT_EQ(n_opened, 2);
  first = nullptr;
  first = devices.get("a", open);
  EXPECT_EQ(n_opened, 3);
}

TEST(SharedDevices, OpenANameOnceForAllThreads) {
  SharedDevices devices;
  std::atomic<int> n_opened = 0;
  const auto open = [&] {
    ++n_opened;
    return std::make_unique<HostDevice>();
  };
  std::mutex mutex;
  std::set<std::shared_ptr<Device>> kept;
  on_threads(8, [&] {
    auto device = devices.get("a", open);
    const std::lock_guard lock(mutex);
    kept.insert(std::move(device));
  });
  EXPECT_EQ(kept.size(), 1U);
  EXPECT_EQ(n_opened, 1);
}

TEST(SharedDevices, DoNotGiveALostDevice) {
  SharedDevices devices;
  test::FaultyDevice* faulty = nullptr;  // the one opened last
  const auto open = [&] {
    auto device = std::make_unique<test::FaultyDevice>();
    faulty = device.get();
    return device;
  };
  const auto lost = devices.get("a", open);
  const auto buffer = lost->allocate(64);
  faulty->lose_at(0);
  std::vector<std::byte> bytes(64);
  EXPECT_THROW(lost->upload(bytes, whole(*buffer)), LostDevice);
  EXPECT_THAT(lost->failure(), HasSubstr("lost"));
  // Its users still have it.
  const auto next = devices.get("a", open);
  EXPECT_NE(next, lost);
  EXPECT_EQ(next->failure(), "");
  EXPECT_THROW(lost->download(whole(*buffer), bytes), LostDevice);
  EXPECT_EQ(difference_from_host(*next, copy_trial({3, 4}, 70, true, 1)), "");
  EXPECT_EQ(devices.get("a", open), next);
}

TEST(SharedDevices, OpenAgainAfterAnError) {
  SharedDevices devices;
  const auto fail = []() -> std::unique_ptr<Device> { throw Error("open device", "a", "no"); };
  EXPECT_THROW(devices.get("a", fail), Error);
  EXPECT_NE(devices.get("a", [] { return std::make_unique<HostDevice>(); }), nullptr);
}

TEST(SharedDevices, AreThoseOfNames) {
  const auto device = open_device("cuda-emulated:0");
  EXPECT_EQ(open_device("cuda-emulated:0"), device);
  EXPECT_EQ(open_device("cuda-emulated"), device);
  EXPECT_NE(open_device("cuda-emulated:1"), device);
  EXPECT_EQ(open_device("host"), open_device("host"));
}

TEST(SharedDevice, LeavesTheSameBits) {
  const auto device = share(std::make_unique<HostDevice>(HostDevice::Order::reversed));
  for (const CheckResult& result : check_device(*device)) {
    EXPECT_EQ(result.trouble, "") << result.what;
  }
}

TEST(SharedDevice, CarriesPartsOfBuffers) {
  const auto device = share(std::make_unique<HostDevice>());
  const auto buffer = device->allocate(2 * kRangeAlignment);
  const Range first = {buffer.get(), 0, kRangeAlignment};
  const Range second = {buffer.get(), kRangeAlignment, kRangeAlignment};
  std::vector<float> numbers(kRangeAlignment / sizeof(float), 1.0F);
  const auto n = static_cast<int>(numbers.size());
  device->upload(std::as_bytes(std::span(numbers)), first);
  const Step step = arithmetic(Function::native_add, n, first, first, first, second);
  device->wait(device->submit(*device->record({&step, 1})));
  device->download(first, std::as_writable_bytes(std::span(numbers)));
  EXPECT_THAT(numbers, Each(1.0F));
  device->download(second, std::as_writable_bytes(std::span(numbers)));
  EXPECT_THAT(numbers, Each(2.0F));
  device->upload(std::as_bytes(std::span(numbers)), first);
  numbers.assign(numbers.size(), 3.0F);
  device->upload(std::as_bytes(std::span(numbers)), second);
  device->download(first, std::as_writable_bytes(std::span(numbers)));
  EXPECT_THAT(numbers, Each(2.0F));
}

// Counts calls, and destructions of programs, that overlap.
class OneAtATime final : public HostDevice {
 public:
  explicit OneAtATime(std::atomic<int>& n_overlaps) : n_overlaps_(n_overlaps) {}

  std::unique_ptr<Buffer> allocate(std::size_t n_bytes) override {
    const Call call(*this);
    return HostDevice::allocate(n_bytes);
  }
  void upload(std::span<const std::byte> from, const Range& to) override {
    const Call call(*this);
    HostDevice::upload(from, to);
  }
  void download(const Range& from, std::span<std::byte> to) override {
    const Call call(*this);
    HostDevice::download(from, to);
  }
  std::unique_ptr<Program> record(std::span<const Step> steps) override {
    const Call call(*this);
    return std::make_unique<Recorded>(*this, HostDevice::record(steps));
  }
  Ticket submit(const Program& program) override {
    const Call call(*this);
    return HostDevice::submit(*static_cast<const Recorded&>(program).its);
  }
  void wait(Ticket ticket) override {
    const Call call(*this);
    HostDevice::wait(ticket);
  }

 private:
  class Call {
   public:
    explicit Call(OneAtATime& device) : device_(device) {
      if (device_.n_calls_.fetch_add(1) > 0) ++device_.n_overlaps_;
      std::this_thread::yield();
    }
    ~Call() { --device_.n_calls_; }

   private:
    OneAtATime& device_;
  };
  struct Recorded final : Program {
    Recorded(OneAtATime& its_device, std::unique_ptr<Program> program)
        : device(its_device), its(std::move(program)) {}
    ~Recorded() override { const Call call(device); }

    OneAtATime& device;
    std::unique_ptr<Program> its;
  };

  std::atomic<int>& n_overlaps_;
  std::atomic<int> n_calls_ = 0;
};

TEST(SharedDevice, TakesOneCallAtATime) {
  std::atomic<int> n_overlaps = 0;
  const auto device = share(std::make_unique<OneAtATime>(n_overlaps));
  std::atomic<int> n_different = 0;
  on_threads(4, [&] {
    const Trial trial = gate_trial({3, 4}, 70, 1);
    for (int i = 0; i < 50; ++i) {
      if (!difference_from_host(*device, trial).empty()) ++n_different;
    }
  });
  EXPECT_EQ(n_different, 0);
  EXPECT_EQ(n_overlaps, 0);
}

TEST(SharedDevice, LivesAsLongAsItsBuffersAndPrograms) {
  auto device = share(std::make_unique<HostDevice>());
  auto x = device->allocate(1024);
  auto y = device->allocate(1024);
  const Step step = arithmetic(Function::native_add, 8, whole(*x), whole(*x), whole(*x), whole(*y));
  auto program = device->record({&step, 1});
  device = nullptr;
  program = nullptr;
  x = nullptr;
  EXPECT_EQ(y->n_bytes(), 1024U);
}

// Two models that are loaded at the same time.
TEST(SharedDevice, HasItsKernelsTriedOnce) {
  Step step;
  step.kernel = Kernel::rms_norm;
  const auto n_running_calls = [&](int n_threads) {
    auto faulty = std::make_unique<test::FaultyDevice>();
    const test::FaultyDevice& counts = *faulty;
    const auto device = share(std::move(faulty));
    on_threads(n_threads, [&] { require_known_answers(*device, {&step, 1}); });
    return counts.running_calls().size();
  };
  EXPECT_EQ(n_running_calls(4), n_running_calls(1));
}

}  // namespace
}  // namespace outrider::device
