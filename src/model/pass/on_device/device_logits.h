// SPDX-License-Identifier: Apache-2.0
// The logits of a pass on a device: the likeliest token of each row came with the pass, whole rows
// come when they are asked for.
#ifndef OUTRIDER_MODEL_PASS_ON_DEVICE_DEVICE_LOGITS_H_
#define OUTRIDER_MODEL_PASS_ON_DEVICE_DEVICE_LOGITS_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/logit_row.h"
#include "device/device.h"
#include "device/row_steps.h"

namespace outrider {

class DeviceLogits final : public DistantRows {
 public:
  explicit DeviceLogits(std::shared_ptr<device::Device> device) : device_(std::move(device)) {}

  // Of the pass that has run. buffer: f32 (rows, width); best: the likeliest of each row.
  void start(std::shared_ptr<const device::Buffer> buffer, int width,
             std::span<const device::BestOfRow> best);
  // All rows into host memory, before the device overwrites them. Throws Error where it is lost.
  void fetch_all();
  const device::Buffer* buffer() const { return buffer_.get(); }

  Likeliest likeliest(int row) const override;
  std::span<float> values(int row) override;

 private:
  std::shared_ptr<device::Device> device_;  // outlives the buffer
  std::shared_ptr<const device::Buffer> buffer_;
  std::size_t width_ = 0;
  std::vector<device::BestOfRow> best_;
  std::vector<float> values_;     // (rows, width), of rows that were fetched
  std::vector<bool> is_fetched_;  // by row
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_ON_DEVICE_DEVICE_LOGITS_H_
