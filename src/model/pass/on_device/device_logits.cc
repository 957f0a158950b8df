// SPDX-License-Identifier: Apache-2.0
#include "model/pass/on_device/device_logits.h"

#include <bit>

namespace outrider {

void DeviceLogits::start(std::shared_ptr<const device::Buffer> buffer, int width,
                         std::span<const device::BestOfRow> best) {
  buffer_ = std::move(buffer);
  width_ = static_cast<std::size_t>(width);
  best_.assign(best.begin(), best.end());
  is_fetched_.assign(best.size(), false);
}

void DeviceLogits::fetch_all() {
  for (std::size_t row = 0; row < best_.size(); ++row) (void)values(static_cast<int>(row));
}

DistantRows::Likeliest DeviceLogits::likeliest(int row) const {
  const device::BestOfRow& best = best_[static_cast<std::size_t>(row)];
  return {static_cast<TokenId>(best.index), std::bit_cast<float>(best.bits)};
}

std::span<float> DeviceLogits::values(int row) {
  const auto index = static_cast<std::size_t>(row);
  // For all rows at once: a row's address must not change while another one is read.
  if (values_.size() < best_.size() * width_) values_.resize(best_.size() * width_);
  const std::span<float> its = std::span(values_).subspan(index * width_, width_);
  if (!is_fetched_[index]) {
    device_->download({buffer_.get(), index * its.size_bytes(), its.size_bytes()},
                      std::as_writable_bytes(its));
    is_fetched_[index] = true;
  }
  return its;
}

}  // namespace outrider
