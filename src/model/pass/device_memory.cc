#include "model/pass/device_memory.h"

#include <span>

namespace outrider {

device::Range DeviceWeights::upload(const void* key, std::span<const std::byte> bytes) {
  std::unique_ptr<device::Buffer>& buffer = buffers_[key];
  if (buffer == nullptr) {
    buffer = device_->allocate(bytes.size());
    device_->upload(bytes, whole(*buffer));
  }
  return whole(*buffer);
}

device::Range DeviceWeights::of(const Matrix& matrix) {
  return upload(matrix.packed().data(), matrix.packed());
}

device::Range DeviceWeights::of(const std::vector<float>& vector) {
  return upload(vector.data(), std::as_bytes(std::span(vector)));
}

void DeviceRoom::require(std::size_t piece, std::size_t n_bytes) {
  if (pieces_.size() <= piece) pieces_.resize(piece + 1);
  std::unique_ptr<device::Buffer>& its = pieces_[piece];
  if (its != nullptr && its->n_bytes() >= n_bytes) return;
  ++generation_;
  its = nullptr;  // frees the old one before allocating the larger one
  its = device_->allocate(n_bytes);
}

}  // namespace outrider
