// One kernel's work on a device as data: which kernel, on which parts of which buffers, and what it
// does with each. Where barriers stand is derived from that alone (barriers.h).
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

// Memory of a device (Device::allocate); it is given back when this ends.
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

// Where ranges of steps begin, in bytes: the largest alignment that Vulkan lets a driver ask for.
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

// Kernels of a device; kernel_steps.h, row_steps.h, cache_steps.h and attend_steps.h say what each
// does and make its steps.
enum class Kernel : int {
  arithmetic,
  quantize_rows,
  product_int8,
  product_int4,
  rms_norm,
  norm_in_place,
  rotate,
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
inline constexpr int kMostUses = 8;  // of one step

struct KernelFacts {
  const char* name;  // of its shader, too
  int n_uses;
  bool has_dots;  // multiplies bytes: there is a form with the instruction for that
};
const KernelFacts& facts_of(Kernel kernel);

// What a kernel is told beside its buffers: 32-bit words. Vulkan has room for 128 bytes at least.
inline constexpr std::size_t kMostNumbers = 16;

struct Step {
  Kernel kernel = Kernel::arithmetic;
  std::vector<Use> uses;  // in the order of the kernel's bindings
  std::array<std::uint32_t, kMostNumbers> numbers{};
  // Which form of the kernel, where it has several: of products how many rows a workgroup works on
  // together, of arithmetic the function, of gates the activation, of the cache its type, of
  // attention whether scores have a cap, of the best of rows what is read.
  std::uint32_t variant = 1;
  std::array<std::uint32_t, 3> grid = {1, 1, 1};  // workgroups

  // As the kernel's own struct of words (kernel_steps.h).
  template <class Numbers>
  Numbers numbers_as() const {
    static_assert(std::is_trivially_copyable_v<Numbers> && sizeof(Numbers) <= sizeof numbers);
    Numbers result;
    std::memcpy(&result, numbers.data(), sizeof result);
    return result;
  }
};

// Throws Error where the step cannot be run as it stands: a use too few or too many, a range that
// is empty, not aligned, or beyond its buffer, two uses of one step that overlap although one is
// written, a grid beyond the device's.
void require_sound(const Step& step, const DeviceFacts& device);

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_STEP_H_
