// SPDX-License-Identifier: Apache-2.0
#include "model/pass/on_device/device_memory.h"

#include <algorithm>
#include <span>
#include <utility>

namespace outrider {

void DeviceWeights::upload(std::span<const std::byte> bytes, Buffers& to) {
  std::unique_ptr<device::Buffer> buffer = device_->allocate(bytes.size());
  device_->upload(bytes, whole(*buffer));
  to.push_back(std::move(buffer));
}

std::vector<DeviceWeights::Columns> DeviceWeights::of(const Matrix& matrix) {
  const std::size_t tile_bytes = matrix.packed_bytes() / static_cast<std::size_t>(matrix.n_tiles());
  // If not even one tile fits, allocate() reports it.
  const std::size_t part_bytes =
      std::max<std::size_t>(device_->facts().max_buffer_bytes / tile_bytes, 1) * tile_bytes;
  Buffers& buffers = matrices_[&matrix];
  if (buffers.empty()) {
    Buffers uploaded;
    const std::span<const std::byte> packed = matrix.packed();
    for (std::size_t at = 0; at < packed.size(); at += part_bytes) {
      upload(packed.subspan(at, std::min(part_bytes, packed.size() - at)), uploaded);
    }
    buffers = std::move(uploaded);
  }
  std::vector<Columns> parts;
  int first = 0;
  for (const auto& buffer : buffers) {
    const int n = static_cast<int>(buffer->n_bytes() / tile_bytes) * kernels::kTileColumns;
    parts.push_back({whole(*buffer), first, std::min(n, matrix.n_columns() - first)});
    first += n;
  }
  return parts;
}

device::Range DeviceWeights::of(const std::vector<float>& vector) {
  Buffers& buffers = vectors_[vector.data()];
  if (buffers.empty()) upload(std::as_bytes(std::span(vector)), buffers);
  return whole(*buffers.front());
}

void DeviceScratch::require(std::size_t piece, std::size_t n_bytes) {
  if (pieces_.size() <= piece) pieces_.resize(piece + 1);
  std::shared_ptr<device::Buffer>& its = pieces_[piece];
  if (its != nullptr && its->n_bytes() >= n_bytes) return;
  ++generation_;
  its = nullptr;  // frees the old one, unless it is shared, before the larger one is allocated
  its = device_->allocate(n_bytes);
}

}  // namespace outrider
