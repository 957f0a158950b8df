// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/emulated_driver.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "device/cuda/entries.h"
#include "device/step.h"
#include "outrider/error.h"

namespace outrider::device::cuda {

// Handles of the driver API are pointers to these.
struct CuContextObject {
  ThreadOrder order = ThreadOrder::ascending;
  std::atomic<int> n_waiting = 0;  // copies and launches in its streams
};
struct CuModuleObject {};
struct CuFunctionObject {
  const Entry* entry = nullptr;
};

namespace {

using Work = std::function<void()>;

}  // namespace

struct CuStreamObject {
  CuContext context = nullptr;
  bool captures = false;
  std::uint32_t n_launches = 0;
  std::vector<Work> captured;
  std::vector<Work> waiting;
};
struct CuGraphObject {
  std::vector<Work> work;
};
struct CuGraphExecObject {
  std::vector<Work> work;
};

namespace {

// CUresult.
constexpr CuResult kInvalidContext = 201;
constexpr CuResult kNotFound = 500;
constexpr CuResult kLaunchFailed = 719;
constexpr CuResult kCaptureWrong = 901;

constexpr std::size_t kMemoryBytes = std::size_t{1} << 40;
constexpr unsigned kMaxGridX = 0x7fffffffU;
constexpr unsigned kMaxGridYz = 65535;
constexpr unsigned kMaxThreads = 1024;

// The calling thread's. Without a destructor: devices that live as long as the program end after a
// thread's objects do.
struct CurrentContexts {
  std::array<CuContext, 16> all;
  std::size_t n;
};
thread_local CurrentContexts current_contexts{};
thread_local std::string last_failure;  // of a launch
thread_local std::uint32_t last_seed = 0;

struct Counts {
  std::atomic<int> contexts, modules, streams, graphs, programs, buffers, early_frees;
};
Counts counts{};

CuContextObject* context_of(CuDevice device) {
  static CuContextObject contexts[] = {{kThreadOrders[0]}, {kThreadOrders[1]}, {kThreadOrders[2]}};
  static_assert(std::size(contexts) == std::size(kThreadOrders));
  return &contexts[device];
}

// As a real driver, it refuses what needs a context where the thread has none.
bool has_context() { return current_contexts.n > 0; }
CuContext current_context() { return current_contexts.all[current_contexts.n - 1]; }

CuResult init(unsigned) { return kSuccess; }
CuResult version(int* version) {
  *version = 13000;
  return kSuccess;
}
CuResult error_string(CuResult result, const char** text) {
  static const std::map<CuResult, const char*> texts = {{kInvalidValue, "invalid argument"},
                                                        {kOutOfMemory, "out of memory"},
                                                        {kInvalidContext, "invalid context"},
                                                        {kNotFound, "named symbol not found"},
                                                        {kCaptureWrong, "invalid capture"}};
  if (result == kLaunchFailed) {
    *text = last_failure.c_str();
    return kSuccess;
  }
  const auto found = texts.find(result);
  *text = found == texts.end() ? nullptr : found->second;
  return found == texts.end() ? kInvalidValue : kSuccess;
}
CuResult count(int* count) {
  *count = static_cast<int>(std::size(kThreadOrders));
  return kSuccess;
}
CuResult device_at(CuDevice* device, int index) {
  *device = index;
  return kSuccess;
}
CuResult device_name(char* name, int n_bytes, CuDevice device) {
  std::snprintf(name, static_cast<std::size_t>(n_bytes), "emulated CUDA, %s threads",
                name_of(kThreadOrders[device]));
  return kSuccess;
}
CuResult device_attribute(int* value, int attribute, CuDevice) {
  switch (attribute) {
    case kAttributeGridY:
      *value = static_cast<int>(kMaxGridYz);
      return kSuccess;
    case kAttributeIntegrated:
      *value = 1;
      return kSuccess;
    case kAttributeCapabilityMajor:
      *value = 7;
      return kSuccess;
    case kAttributeCapabilityMinor:
      *value = 5;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}
CuResult total_memory(std::size_t* n_bytes, CuDevice) {
  *n_bytes = kMemoryBytes;
  return kSuccess;
}
CuResult retain_context(CuContext* context, CuDevice device) {
  *context = context_of(device);
  ++counts.contexts;
  return kSuccess;
}
CuResult release_context(CuDevice) {
  --counts.contexts;
  return kSuccess;
}
CuResult push_context(CuContext context) {
  if (current_contexts.n == current_contexts.all.size()) return kOutOfMemory;
  current_contexts.all[current_contexts.n++] = context;
  return kSuccess;
}
CuResult pop_context(CuContext* context) {
  if (!has_context()) return kInvalidContext;
  *context = current_contexts.all[--current_contexts.n];
  return kSuccess;
}

CuResult load_module(CuModule* module, const void*) {
  if (!has_context()) return kInvalidContext;
  *module = new CuModuleObject;
  ++counts.modules;
  return kSuccess;
}
CuResult unload_module(CuModule module) {
  delete module;
  --counts.modules;
  return kSuccess;
}
CuResult function_of(CuFunction* function, CuModule, const char* name) {
  static std::vector<CuFunctionObject> functions = [] {
    std::vector<CuFunctionObject> all;
    for (const Entry& entry : entries()) all.push_back({&entry});
    return all;
  }();
  for (CuFunctionObject& one : functions) {
    if (std::strcmp(one.entry->name, name) != 0) continue;
    *function = &one;
    return kSuccess;
  }
  return kNotFound;
}

// Exactly as many bytes: the sanitizer sees what is beyond.
constexpr std::align_val_t kAlignment{kRangeAlignment};
CuResult allocate(CuPointer* memory, std::size_t n_bytes) {
  if (!has_context()) return kInvalidContext;
  void* const made = ::operator new(n_bytes, kAlignment, std::nothrow);
  if (made == nullptr) return kOutOfMemory;
  std::memset(made, 0x7f, n_bytes);
  *memory = reinterpret_cast<CuPointer>(made);
  ++counts.buffers;
  return kSuccess;
}
CuResult free_memory(CuPointer memory) {
  if (!has_context()) return kInvalidContext;
  if (current_context()->n_waiting > 0) ++counts.early_frees;
  --counts.buffers;
  ::operator delete(reinterpret_cast<void*>(memory), kAlignment);
  return kSuccess;
}

CuResult create_stream(CuStream* stream, unsigned) {
  if (!has_context()) return kInvalidContext;
  *stream = new CuStreamObject;
  (*stream)->context = current_context();
  ++counts.streams;
  return kSuccess;
}
CuResult destroy_stream(CuStream stream) {
  stream->context->n_waiting -= static_cast<int>(stream->waiting.size());
  delete stream;
  --counts.streams;
  return kSuccess;
}
CuResult synchronize(CuStream stream) {
  if (!has_context()) return kInvalidContext;
  if (stream->captures) return kCaptureWrong;
  const std::vector<Work> waiting = std::exchange(stream->waiting, {});
  stream->context->n_waiting -= static_cast<int>(waiting.size());
  try {
    for (const Work& work : waiting) work();
  } catch (const Error& error) {
    last_failure = error.what();
    return kLaunchFailed;
  }
  return kSuccess;
}
CuResult put(CuStream stream, Work work) {
  if (!has_context()) return kInvalidContext;
  if (stream->captures) {
    stream->captured.push_back(std::move(work));
  } else {
    stream->waiting.push_back(std::move(work));
    ++stream->context->n_waiting;
  }
  return kSuccess;
}
CuResult copy_to_device(CuPointer to, const void* from, std::size_t n_bytes, CuStream stream) {
  return put(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), from, n_bytes); });
}
CuResult copy_from_device(void* to, CuPointer from, std::size_t n_bytes, CuStream stream) {
  return put(stream, [=] { std::memcpy(to, reinterpret_cast<const void*>(from), n_bytes); });
}
CuResult begin_capture(CuStream stream, int) {
  if (!has_context() || stream->captures) return kCaptureWrong;
  stream->captures = true;
  return kSuccess;
}
CuResult end_capture(CuStream stream, CuGraph* graph) {
  if (!stream->captures) return kCaptureWrong;
  stream->captures = false;
  *graph = new CuGraphObject{std::exchange(stream->captured, {})};
  ++counts.graphs;
  return kSuccess;
}
CuResult instantiate(CuGraphExec* program, CuGraph graph, unsigned long long) {
  *program = new CuGraphExecObject{graph->work};
  ++counts.programs;
  return kSuccess;
}
CuResult destroy_graph(CuGraph graph) {
  delete graph;
  --counts.graphs;
  return kSuccess;
}
CuResult launch_graph(CuGraphExec program, CuStream stream) {
  for (const Work& work : program->work) {
    if (const CuResult result = put(stream, work); result != kSuccess) return result;
  }
  return kSuccess;
}
CuResult destroy_program(CuGraphExec program) {
  delete program;
  --counts.programs;
  return kSuccess;
}

CuResult launch(CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, unsigned block_z, unsigned, CuStream stream,
                void** parameters, void**) {
  const bool is_sound = grid_x >= 1 && grid_x <= kMaxGridX && grid_y >= 1 && grid_y <= kMaxGridYz &&
                        grid_z >= 1 && grid_z <= kMaxGridYz && block_x >= 1 &&
                        block_x <= kMaxThreads && block_y == 1 && block_z == 1;
  if (!is_sound) return kInvalidValue;
  StepArguments arguments;
  std::memcpy(&arguments, parameters[0], sizeof arguments);
  EmulatedLaunch how{.kernel = function->entry->name,
                     .grid = {grid_x, grid_y, grid_z},
                     .n_threads = block_x,
                     .order = stream->context->order};
  // A graph's work is copied for each run, so the count is the stream's.
  return put(stream, [entry = function->entry, how, arguments, stream]() mutable {
    how.seed = last_seed = ++stream->n_launches;
    EmulatedBlock::run(how, [&] { entry->on_fiber(arguments); });
  });
}

}  // namespace

const Driver& emulated_driver() {
  static const Driver driver = {.cuInit = init,
                                .cuDriverGetVersion = version,
                                .cuGetErrorString = error_string,
                                .cuDeviceGetCount = count,
                                .cuDeviceGet = device_at,
                                .cuDeviceGetName = device_name,
                                .cuDeviceGetAttribute = device_attribute,
                                .cuDeviceTotalMem_v2 = total_memory,
                                .cuDevicePrimaryCtxRetain = retain_context,
                                .cuDevicePrimaryCtxRelease_v2 = release_context,
                                .cuCtxPushCurrent_v2 = push_context,
                                .cuCtxPopCurrent_v2 = pop_context,
                                .cuModuleLoadData = load_module,
                                .cuModuleUnload = unload_module,
                                .cuModuleGetFunction = function_of,
                                .cuMemAlloc_v2 = allocate,
                                .cuMemFree_v2 = free_memory,
                                .cuMemcpyHtoDAsync_v2 = copy_to_device,
                                .cuMemcpyDtoHAsync_v2 = copy_from_device,
                                .cuStreamCreate = create_stream,
                                .cuStreamDestroy_v2 = destroy_stream,
                                .cuStreamSynchronize = synchronize,
                                .cuStreamBeginCapture_v2 = begin_capture,
                                .cuStreamEndCapture = end_capture,
                                .cuGraphInstantiateWithFlags = instantiate,
                                .cuGraphDestroy = destroy_graph,
                                .cuGraphLaunch = launch_graph,
                                .cuGraphExecDestroy = destroy_program,
                                .cuLaunchKernel = launch,
                                .is_emulated = true};
  return driver;
}

std::uint32_t last_emulated_seed() { return last_seed; }

EmulatedUse emulated_use() {
  return {.contexts = counts.contexts,
          .modules = counts.modules,
          .streams = counts.streams,
          .graphs = counts.graphs,
          .programs = counts.programs,
          .buffers = counts.buffers,
          .waiting = context_of(0)->n_waiting + context_of(1)->n_waiting + context_of(2)->n_waiting,
          .current = static_cast<int>(current_contexts.n),
          .early_frees = counts.early_frees};
}

std::unique_ptr<CudaDevice> open_emulated(ThreadOrder order) {
  // It takes its kernels from entries() and reads no image.
  static constexpr std::uint64_t kNoWords[1] = {};
  static constexpr Cubin kNone[] = {{75, kNoWords}};
  return std::make_unique<CudaDevice>(emulated_driver(), static_cast<int>(order), kNone);
}

}  // namespace outrider::device::cuda
