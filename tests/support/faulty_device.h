// SPDX-License-Identifier: Apache-2.0
// Devices that fail: their memory is used up at some call, they are lost, or they leave wrong bits.
// They wrap the host device (device/host/host_device.h), which does the work.
#ifndef OUTRIDER_TESTS_SUPPORT_FAULTY_DEVICE_H_
#define OUTRIDER_TESTS_SUPPORT_FAULTY_DEVICE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/host/host_device.h"
#include "outrider/error.h"

namespace outrider::test {

// A call of a device: its operation, and the stage of the test in which it was made.
struct DeviceCall {
  std::string stage;
  std::string operation;

  std::string kind() const { return stage + ": " + operation; }
};

// Numbers of calls at which a test injects a fault: the first and the last call of each kind, or
// all calls.
inline std::vector<int> calls_to_fail(const std::vector<DeviceCall>& calls, bool all) {
  std::map<std::string, std::vector<int>> of_kinds;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    of_kinds[calls[i].kind()].push_back(static_cast<int>(i));
  }
  std::set<int> chosen;
  for (const auto& [kind, numbers] : of_kinds) {
    chosen.insert({numbers.front(), numbers.back()});
    if (all) chosen.insert(numbers.begin(), numbers.end());
  }
  return {chosen.begin(), chosen.end()};
}

inline std::set<std::string> kinds_of(const std::vector<DeviceCall>& calls) {
  std::set<std::string> kinds;
  for (const DeviceCall& call : calls) kinds.insert(call.kind());
  return kinds;
}

// Calls that allocate (allocate, record) and calls that run (submit, wait, upload, download) are
// counted separately.
class FaultyDevice : public device::Device {
 public:
  static constexpr int kNever = std::numeric_limits<int>::max();

  FaultyDevice() : facts_(host_.facts()) {
    facts_.name = "faulty";
    facts_.kind = device::DeviceKind::software;
  }

  // The n-th allocating call from now on (0: the next one) finds no memory; with `stays`, all later
  // ones find none either.
  void run_out_at(int n, bool stays = false) {
    taken_.clear();
    out_at_ = n;
    stays_out_ = stays;
  }
  // The n-th running call from now on finds the device lost.
  void lose_at(int n) {
    run_.clear();
    lost_at_ = n;
  }
  // The stage of all calls from now on.
  void enter_stage(const std::string& stage) { stage_ = stage; }
  // There is memory again, the device is no longer lost, and no calls are counted. Kernels that
  // have passed their trials (device/trials/known_answers.h) are not tried again.
  void heal() {
    run_out_at(kNever);
    lose_at(kNever);
    has_run_out_ = false;
    is_lost_ = false;
  }
  // Since the last run_out_at() and lose_at(): calls that allocate, and calls that run.
  const std::vector<DeviceCall>& taking_calls() const { return taken_; }
  const std::vector<DeviceCall>& running_calls() const { return run_; }
  bool has_run_out() const { return has_run_out_; }

  const device::DeviceFacts& facts() const override { return facts_; }
  std::string failure() const override { return is_lost_ ? "faulty was lost" : ""; }
  std::unique_ptr<device::Buffer> allocate(std::size_t n_bytes) override {
    take("allocate");
    return host_.allocate(n_bytes);
  }
  void upload(std::span<const std::byte> from, const device::Range& to) override {
    start("upload");
    host_.upload(from, to);
  }
  void download(const device::Range& from, std::span<std::byte> to) override {
    start("download");
    host_.download(from, to);
  }
  std::unique_ptr<device::Program> record(std::span<const device::Step> steps) override {
    take("record");
    return host_.record(steps);
  }
  device::Ticket submit(const device::Program& program) override {
    start("submit");
    return host_.submit(program);
  }
  void wait(device::Ticket ticket) override {
    start("wait");
    host_.wait(ticket);
  }

 private:
  void take(const char* operation) {
    const int n = static_cast<int>(taken_.size());
    taken_.push_back({stage_, operation});
    if (n != out_at_ && !(stays_out_ && n > out_at_)) return;
    has_run_out_ = true;
    throw NoDeviceMemory(operation, "faulty", "out of the device's memory");
  }
  void start(const char* operation) {
    if (static_cast<int>(run_.size()) == lost_at_) is_lost_ = true;
    run_.push_back({stage_, operation});
    if (is_lost_) throw LostDevice(operation, "faulty", "the device was lost");
  }

  device::HostDevice host_;
  device::DeviceFacts facts_;
  int out_at_ = kNever;
  bool stays_out_ = false;
  bool has_run_out_ = false;
  int lost_at_ = kNever;
  bool is_lost_ = false;
  std::string stage_;
  std::vector<DeviceCall> taken_;
  std::vector<DeviceCall> run_;
};

// A device whose driver changes the lowest bit of the first byte that a kernel writes, in one form
// of the kernel or in all.
class LyingDevice : public device::Device {
 public:
  explicit LyingDevice(device::Kernel kernel, std::optional<std::uint32_t> form = std::nullopt)
      : facts_(honest_.facts()), kernel_(kernel), form_(form) {
    facts_.name = "liar";
    facts_.kind = device::DeviceKind::software;
  }

  const device::DeviceFacts& facts() const override { return facts_; }
  std::unique_ptr<device::Buffer> allocate(std::size_t n_bytes) override {
    return honest_.allocate(n_bytes);
  }
  void upload(std::span<const std::byte> from, const device::Range& to) override {
    honest_.upload(from, to);
  }
  void download(const device::Range& from, std::span<std::byte> to) override {
    honest_.download(from, to);
    // Once, however many steps have written it.
    const bool is_wrong =
        std::any_of(wrong_.begin(), wrong_.end(),
                    [&](const device::Range& range) { return range.buffer == from.buffer; });
    if (is_wrong && !to.empty()) to[0] ^= std::byte{1};
  }
  std::unique_ptr<device::Program> record(std::span<const device::Step> steps) override {
    wrong_.clear();
    for (const device::Step& step : steps) {
      if (step.kernel != kernel_ || (form_ && step.variant != *form_)) continue;
      for (const device::Use& use : step.uses) {
        if (use.writes()) wrong_.push_back(use.range);
      }
    }
    return honest_.record(steps);
  }
  device::Ticket submit(const device::Program& program) override { return honest_.submit(program); }
  void wait(device::Ticket ticket) override { honest_.wait(ticket); }

 private:
  device::HostDevice honest_;
  device::DeviceFacts facts_;
  device::Kernel kernel_;
  std::optional<std::uint32_t> form_;
  std::vector<device::Range> wrong_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_FAULTY_DEVICE_H_
