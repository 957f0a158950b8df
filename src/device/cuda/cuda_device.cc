// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "device/cuda/entries.h"
#include "outrider/error.h"

namespace outrider::device::cuda {

int n_devices(const Driver& driver) {
  int n = 0;
  require_success(driver, driver.cuDeviceGetCount(&n), "list devices", "CUDA");
  return n;
}

namespace {

std::string name_of(const Driver& driver, int index) {
  return fmt::format("{}:{}", driver.is_emulated ? "cuda-emulated" : "cuda", index);
}

CuDevice device_at(const Driver& driver, int index) {
  const int n = n_devices(driver);
  if (index < 0 || index >= n) {
    throw Error("open device", name_of(driver, index), fmt::format("one of {} devices", n),
                "none of them");
  }
  CuDevice device = 0;
  require_success(driver, driver.cuDeviceGet(&device, index), "open device",
                  name_of(driver, index));
  return device;
}

int attribute(const Driver& driver, CuDevice device, int which) {
  int value = 0;
  require_success(driver, driver.cuDeviceGetAttribute(&value, which, device), "list devices",
                  "CUDA");
  return value;
}

const Cubin& cubin_of(const Driver& driver, CuDevice device, const std::string& name,
                      std::span<const Cubin> cubins) {
  const int major = attribute(driver, device, kAttributeCapabilityMajor);
  const int minor = attribute(driver, device, kAttributeCapabilityMinor);
  if (cubins.empty()) {
    throw Error("open device", name, "a build with CUDA kernels",
                "one without (nvcc was missing, or could not)");
  }
  if (const Cubin* const cubin = cubin_for(cubins, major, minor)) return *cubin;
  std::string built;
  for (const Cubin& cubin : cubins) {
    built += fmt::format("{}{}.{}", built.empty() ? "" : ", ", cubin.architecture / 10,
                         cubin.architecture % 10);
  }
  throw Error("open device", name, "kernels for compute capability " + built,
              fmt::format("a device of {}.{}", major, minor));
}

std::string in_words(int release) {
  return fmt::format("CUDA {}.{}", release / 1000, release % 1000 / 10);
}
int release_of(const Driver& driver, const std::string& name) {
  int release = 0;
  require_success(driver, driver.cuDriverGetVersion(&release), "list devices", name);
  return release;
}

// Drivers load what an nvcc of their own major version made, or of an older one.
void require_as_new(const Driver& driver, const Cubin& cubin, const std::string& name) {
  const int release = release_of(driver, name);
  if (release / 1000 >= cubin.release / 1000) return;
  throw Error("load kernels", name,
              fmt::format("a driver for CUDA {} (their nvcc is of {})", cubin.release / 1000,
                          in_words(cubin.release)),
              "one for " + in_words(release));
}

}  // namespace

int first_usable_device(const Driver& driver, std::span<const Cubin> cubins) {
  const int n = n_devices(driver);
  std::string why = "none";
  for (int index = 0; index < n; ++index) {
    try {
      (void)cubin_of(driver, device_at(driver, index), name_of(driver, index), cubins);
      return index;
    } catch (const Error& error) {
      if (n == 1) throw;
      if (index == 0) why = fmt::format("{} of which the first: {}", n, error.what());
    }
  }
  throw Error("open device", driver.is_emulated ? "cuda-emulated" : "cuda",
              "a GPU that can be used (outrider devices lists them)", why);
}

DeviceFacts facts_of(const Driver& driver, int index) {
  const CuDevice device = device_at(driver, index);
  DeviceFacts facts;
  std::array<char, 256> name{};
  require_success(driver,
                  driver.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device),
                  "list devices", "CUDA");
  facts.name = name.data();
  facts.driver = in_words(release_of(driver, facts.name));
  const bool is_integrated = attribute(driver, device, kAttributeIntegrated) != 0;
  facts.kind = is_integrated ? DeviceKind::integrated : DeviceKind::discrete;
  if (driver.is_emulated) facts.kind = DeviceKind::software;
  facts.tier = fmt::format("compute capability {}.{}, dots of bytes, IEEE arithmetic",
                           attribute(driver, device, kAttributeCapabilityMajor),
                           attribute(driver, device, kAttributeCapabilityMinor));
  require_success(driver, driver.cuDeviceTotalMem_v2(&facts.memory_bytes, device), "list devices",
                  facts.name);
  facts.max_buffer_bytes = facts.memory_bytes;
  facts.max_groups = static_cast<std::uint32_t>(attribute(driver, device, kAttributeGridY));
  return facts;
}

class CudaDevice::Core {
 public:
  Core(const Driver& driver, int index, std::span<const Cubin> cubins)
      : driver_(driver), device_(device_at(driver, index)), name_(name_of(driver, index)) {
    const Cubin& cubin = cubin_of(driver, device_, name_, cubins);
    require(driver.cuDevicePrimaryCtxRetain(&context_, device_), "open device");
    try {
      const Current current(*this);
      require(driver.cuStreamCreate(&stream_, kStreamNonBlocking), "open device");
      const CuResult loaded = driver.cuModuleLoadData(&module_, cubin.words.data());
      if (loaded != kSuccess) require_as_new(driver, cubin, name_);
      require(loaded, "load kernels");
      for (const Entry& entry : entries()) {
        require_success(driver,
                        driver.cuModuleGetFunction(&functions_.emplace_back(), module_, entry.name),
                        "load kernels", entry.name);
      }
    } catch (...) {
      close();
      throw;
    }
  }
  ~Core() { close(); }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // The context belongs to the calling thread as long as this lives.
  class Current {
   public:
    explicit Current(Core& core) : driver_(core.driver_) {
      core.require(kSuccess, "use device");
      core.require(driver_.cuCtxPushCurrent_v2(core.context_), "use device");
    }
    ~Current() {
      CuContext popped = nullptr;
      driver_.cuCtxPopCurrent_v2(&popped);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const Driver& driver_;
  };

  const Driver& driver() const { return driver_; }
  const std::string& name() const { return name_; }
  CuStream stream() const { return stream_; }
  CuFunction function(std::size_t entry) const { return functions_[entry]; }

  // Throws also after an earlier result was final: later calls of the driver may seem to succeed.
  void require(CuResult result, const char* operation) { require(result, operation, name_); }
  void require(CuResult result, const char* operation, const std::string& object) {
    note(result);
    if (!lost_) return require_success(driver_, result, operation, object);
    throw LostDevice(operation, object,
                     result == kSuccess ? "it was lost before" : words_of(driver_, result));
  }
  // Thread-safe.
  bool is_lost() const { return lost_; }

  Ticket submit(CuGraphExec program) {
    const Current current(*this);
    // Of no step: nothing to do.
    if (program != nullptr) require(driver_.cuGraphLaunch(program, stream_), "submit");
    return ++n_submitted_;
  }
  void wait(Ticket ticket) {
    require(kSuccess, "wait");
    if (ticket <= n_ended_) return;
    const Current current(*this);
    wait_for_all("wait");
  }
  // The context must be the calling thread's.
  void wait_for_all(const char* operation) {
    const Ticket all = n_submitted_;
    require(synchronise(), operation);
    n_ended_ = all;
  }

  // For destructors, also of a lost device: frees what submitted work may use. What went wrong is
  // said by what comes next.
  template <class Function>
  void free_by(const Function& free) noexcept {
    const CuResult entered = driver_.cuCtxPushCurrent_v2(context_);
    note(entered);
    if (entered != kSuccess) return;
    if (n_ended_ != n_submitted_) synchronise();
    free();
    CuContext popped = nullptr;
    driver_.cuCtxPopCurrent_v2(&popped);
  }

 private:
  void note(CuResult result) noexcept {
    if (is_final(result)) lost_ = true;
  }
  // Work that cannot be waited for may still use its buffers, so the device is lost, whatever the
  // error is.
  CuResult synchronise() noexcept {
    const CuResult result = driver_.cuStreamSynchronize(stream_);
    if (result != kSuccess) lost_ = true;
    return result;
  }
  void close() noexcept {
    free_by([&] {
      if (module_ != nullptr) driver_.cuModuleUnload(module_);
      if (stream_ != nullptr) driver_.cuStreamDestroy_v2(stream_);
    });
    driver_.cuDevicePrimaryCtxRelease_v2(device_);
  }

  const Driver& driver_;
  CuDevice device_;
  std::string name_;
  CuContext context_ = nullptr;
  CuStream stream_ = nullptr;
  CuModule module_ = nullptr;
  std::vector<CuFunction> functions_;  // of entries()
  Ticket n_submitted_ = 0;
  Ticket n_ended_ = 0;
  std::atomic<bool> lost_ = false;
};

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(std::shared_ptr<CudaDevice::Core> core, std::size_t n_bytes)
      : Buffer(n_bytes), core_(std::move(core)) {
    const CudaDevice::Core::Current current(*core_);
    core_->require(core_->driver().cuMemAlloc_v2(&memory_, n_bytes), "allocate",
                   fmt::format("{} bytes of {}", n_bytes, core_->name()));
  }
  ~CudaBuffer() override {
    core_->free_by([&] { core_->driver().cuMemFree_v2(memory_); });
  }

  CuPointer at(std::size_t offset) const { return memory_ + offset; }

 private:
  std::shared_ptr<CudaDevice::Core> core_;
  CuPointer memory_ = 0;
};

namespace {

CuPointer pointer_to(const Range& range) {
  return static_cast<const CudaBuffer&>(*range.buffer).at(range.offset);
}

StepArguments arguments_of(const Step& step) {
  StepArguments arguments{};
  for (std::size_t i = 0; i < step.uses.size(); ++i) {
    arguments.ranges[i] = reinterpret_cast<void*>(pointer_to(step.uses[i].range));
  }
  std::copy(step.numbers.begin(), step.numbers.end(), arguments.numbers);
  return arguments;
}

}  // namespace

class CudaProgram : public Program {
 public:
  CudaProgram(std::shared_ptr<CudaDevice::Core> core, std::span<const Step> steps)
      : core_(std::move(core)) {
    if (steps.empty()) return;
    const Driver& driver = core_->driver();
    const CudaDevice::Core::Current current(*core_);
    core_->require(driver.cuStreamBeginCapture_v2(core_->stream(), kCaptureRelaxed), "record");
    CuGraph graph = nullptr;
    try {
      for (const Step& step : steps) launch(step);
    } catch (...) {
      driver.cuStreamEndCapture(core_->stream(), &graph);
      if (graph != nullptr) driver.cuGraphDestroy(graph);
      throw;
    }
    CuResult made = driver.cuStreamEndCapture(core_->stream(), &graph);
    if (made == kSuccess) made = driver.cuGraphInstantiateWithFlags(&program_, graph, 0);
    if (graph != nullptr) driver.cuGraphDestroy(graph);
    core_->require(made, "record");
  }
  ~CudaProgram() override {
    if (program_ == nullptr) return;
    core_->free_by([&] { core_->driver().cuGraphExecDestroy(program_); });
  }

  Ticket submit() const { return core_->submit(program_); }

 private:
  void launch(const Step& step) const {
    if (std::find(step.grid.begin(), step.grid.end(), 0U) != step.grid.end()) return;
    const std::size_t entry = entry_of(step);
    StepArguments arguments = arguments_of(step);  // copied by the launch
    void* parameters[] = {&arguments};
    core_->require(core_->driver().cuLaunchKernel(
                       core_->function(entry), step.grid[0], step.grid[1], step.grid[2],
                       entries()[entry].n_threads, 1, 1, 0, core_->stream(), parameters, nullptr),
                   "record");
  }

  std::shared_ptr<CudaDevice::Core> core_;
  CuGraphExec program_ = nullptr;
};

CudaDevice::CudaDevice(const Driver& driver, int index, std::span<const Cubin> cubins)
    : core_(std::make_shared<Core>(driver, index, cubins)), facts_(cuda::facts_of(driver, index)) {}

CudaDevice::~CudaDevice() = default;

std::string CudaDevice::failure() const {
  return core_->is_lost() ? facts_.name + " was lost" : std::string();
}

std::unique_ptr<Buffer> CudaDevice::allocate(std::size_t n_bytes) {
  if (n_bytes == 0 || n_bytes > facts_.max_buffer_bytes) {
    throw Error("allocate", facts_.name,
                fmt::format("a buffer of 1 to {} bytes", facts_.max_buffer_bytes),
                fmt::format("{}", n_bytes));
  }
  return std::make_unique<CudaBuffer>(core_, n_bytes);
}

// The memory that the processor has is read at once or, by large copies, until the stream has
// ended.
void CudaDevice::upload(std::span<const std::byte> from, const Range& to) {
  const Core::Current current(*core_);
  core_->require(core_->driver().cuMemcpyHtoDAsync_v2(pointer_to(to), from.data(), from.size(),
                                                      core_->stream()),
                 "upload");
  core_->wait_for_all("upload");
}

void CudaDevice::download(const Range& from, std::span<std::byte> to) {
  const Core::Current current(*core_);
  core_->require(
      core_->driver().cuMemcpyDtoHAsync_v2(to.data(), pointer_to(from), to.size(), core_->stream()),
      "download");
  core_->wait_for_all("download");
}

std::unique_ptr<Program> CudaDevice::record(std::span<const Step> steps) {
  for (const Step& step : steps) require_sound(step, facts_);
  return std::make_unique<CudaProgram>(core_, steps);
}

Ticket CudaDevice::submit(const Program& program) {
  return static_cast<const CudaProgram&>(program).submit();
}

void CudaDevice::wait(Ticket ticket) { core_->wait(ticket); }

}  // namespace outrider::device::cuda
