// A list of ops' memory on a device: its weights, once, and buffers for the rows of a pass.
#ifndef OUTRIDER_MODEL_PASS_DEVICE_MEMORY_H_
#define OUTRIDER_MODEL_PASS_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "device/device.h"
#include "tensor/matrix.h"

namespace outrider {

// Matrices and vectors, by their addresses in host memory. Each is uploaded once.
class DeviceWeights {
 public:
  explicit DeviceWeights(std::shared_ptr<device::Device> device) : device_(std::move(device)) {}

  // Throws Error if the device's memory is full.
  device::Range of(const Matrix& matrix);
  device::Range of(const std::vector<float>& vector);

 private:
  device::Range upload(const void* key, std::span<const std::byte> bytes);

  std::shared_ptr<device::Device> device_;  // must outlive the buffers
  std::unordered_map<const void*, std::unique_ptr<device::Buffer>> buffers_;
};

// Memory that is reused in every pass. When it grows, its contents are lost.
class DeviceRoom {
 public:
  explicit DeviceRoom(std::shared_ptr<device::Device> device) : device_(std::move(device)) {}

  // Pieces are numbered in the order of their first request. Throws Error if the device's memory is
  // full; the piece is freed then.
  void require(std::size_t piece, std::size_t n_bytes);
  // The first n_bytes of a piece.
  device::Range of(std::size_t piece, std::size_t n_bytes) const {
    return {pieces_[piece].get(), 0, n_bytes};
  }
  // Changes whenever of() may return another buffer.
  std::uint64_t generation() const { return generation_; }

 private:
  std::shared_ptr<device::Device> device_;  // must outlive the buffers
  std::vector<std::unique_ptr<device::Buffer>> pieces_;
  std::uint64_t generation_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_DEVICE_MEMORY_H_
