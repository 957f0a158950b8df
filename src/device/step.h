// SPDX-License-Identifier: Apache-2.0
// One kernel's work on a device as data: the kernel, its ranges of buffers, and how it uses each.
// Barriers are derived from this alone (barriers.h).
#ifndef OUTRIDER_DEVICE_STEP_H_
#define OUTRIDER_DEVICE_STEP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace outrider::device {

struct DeviceFacts;

// Memory of a device (Device::allocate), freed by the destructor.
class Buffer {
 public:
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::size_t n_bytes() const { return n_bytes_; }

 protected:
  explicit Buffer(std::size_t n_bytes) : n_bytes_(n_bytes) {}

 private:
  std::size_t n_bytes_;
};

// The alignment of ranges of steps, in bytes: the largest that Vulkan lets a driver require.
inline constexpr std::size_t kRangeAlignment = 256;

// Bytes [offset, offset + n_bytes) of a buffer.
struct Range {
  const Buffer* buffer = nullptr;
  std::size_t offset = 0;
  std::size_t n_bytes = 0;

  bool overlaps(const Range& other) const {
    return buffer == other.buffer && offset < other.offset + other.n_bytes &&
           other.offset < offset + n_bytes;
  }
};

inline Range whole(const Buffer& buffer) { return {&buffer, 0, buffer.n_bytes()}; }

enum class Access { read, write, read_write };

struct Use {
  Range range;
  Access access = Access::read;

  bool reads() const { return access != Access::write; }
  bool writes() const { return access != Access::read; }
};

// Kernels of a device; kernel_steps.h, row_steps.h, cache_steps.h and attend_steps.h define what
// each does and make its steps.
enum class Kernel : int {
  arithmetic,
  quantize_rows,
  product_int8,
  product_int4,
  rms_norm,
  norm_in_place,
  apply_rope,
  gate,
  add_rows,
  add_bias,
  scale_rows,
  copy_rows,
  best_of_rows,
  cap_rows,
  layer_norm,
  activate,
  store_rows,
  move_slots,
  attend_f32,
  attend_bf16,
  attend_int8,
  merge_splits,
};
inline constexpr int kKernels = 22;
inline constexpr int kMaxUses = 8;  // of one step

struct KernelFacts {
  const char* name;  // also its shader's name
  int n_uses;
  bool has_dots;  // multiplies bytes: there is a version with the dot-product instruction
};
const KernelFacts& facts_of(Kernel kernel);

// A kernel's parameters beside its buffers, as 32-bit words. Vulkan guarantees 128 bytes.
inline constexpr std::size_t kMaxNumbers = 16;

struct Step {
  Kernel kernel = Kernel::arithmetic;
  std::vector<Use> uses;  // in the order of the kernel's bindings
  std::array<std::uint32_t, kMaxNumbers> numbers{};
  // The form of the kernel, if it has several. Products: how many rows a workgroup processes
  // together. Arithmetic: the function. Gates: the activation. The cache: its type. Attention:
  // whether scores have a cap. The best of rows: its input.
  std::uint32_t variant = 1;
  std::array<std::uint32_t, 3> grid = {1, 1, 1};  // in workgroups

  // In the kernel's own struct of words (kernel_steps.h).
  template <class Numbers>
  Numbers numbers_as() const {
    static_assert(std::is_trivially_copyable_v<Numbers> && sizeof(Numbers) <= sizeof numbers);
    Numbers result;
    std::memcpy(&result, numbers.data(), sizeof result);
    return result;
  }
};

// Throws Error if the step cannot be run: the wrong number of uses; a range that is empty, not
// aligned, or beyond its buffer; two overlapping uses, one of them written; a grid beyond the
// device's limit.
void require_sound(const Step& step, const DeviceFacts& device);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_STEP_H_
