// SPDX-License-Identifier: Apache-2.0
// A list of ops' memory on a device: its weights, once, and buffers for the rows of a pass.
#ifndef OUTRIDER_MODEL_PASS_ON_DEVICE_DEVICE_MEMORY_H_
#define OUTRIDER_MODEL_PASS_ON_DEVICE_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "device/device.h"
#include "tensor/matrix.h"

namespace outrider {

// Matrices and vectors by their addresses in this machine's memory. Each is uploaded once; a matrix
// may be released on the host then. A matrix larger than the device's limit for one allocation is
// split over several.
class DeviceWeights {
 public:
  explicit DeviceWeights(std::shared_ptr<device::Device> device) : device_(std::move(device)) {}

  // Throws Error if the device has too little memory.
  struct Columns {
    device::Range tiles;
    int first = 0;
    int n = 0;
  };
  std::vector<Columns> of(const Matrix& matrix);
  device::Range of(const std::vector<float>& vector);

 private:
  using Buffers = std::vector<std::unique_ptr<device::Buffer>>;
  void upload(std::span<const std::byte> bytes, Buffers& to);

  std::shared_ptr<device::Device> device_;  // outlives the buffers
  std::unordered_map<const Matrix*, Buffers> matrices_;
  std::unordered_map<const float*, Buffers> vectors_;
};

// Memory that is reused in every pass. When it grows, its contents are lost.
class DeviceScratch {
 public:
  explicit DeviceScratch(std::shared_ptr<device::Device> device) : device_(std::move(device)) {}

  // Pieces are numbered in the order of their first request. Throws Error if the device's memory is
  // full; the piece is freed then.
  void require(std::size_t piece, std::size_t n_bytes);
  // The first n_bytes of a piece.
  device::Range of(std::size_t piece, std::size_t n_bytes) const {
    return {pieces_[piece].get(), 0, n_bytes};
  }
  // For readers of a piece after later passes: the buffer is unchanged when the piece grows.
  std::shared_ptr<const device::Buffer> share(std::size_t piece) const { return pieces_[piece]; }
  // Changes whenever of() may return another buffer.
  std::uint64_t generation() const { return generation_; }

 private:
  std::shared_ptr<device::Device> device_;  // outlives the buffers
  std::vector<std::shared_ptr<device::Buffer>> pieces_;
  std::uint64_t generation_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_ON_DEVICE_DEVICE_MEMORY_H_
