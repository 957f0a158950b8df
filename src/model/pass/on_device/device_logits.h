// SPDX-License-Identifier: Apache-2.0
// The logits of a pass on a device. The likeliest token of each row is downloaded with the pass;
// whole rows are downloaded when they are read.
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

  // Called after a pass. buffer: f32 (rows, width); best: the likeliest of each row.
  void start(std::shared_ptr<const device::Buffer> buffer, int width,
             std::span<const device::BestOfRow> best);
  // Copies all rows into host memory, before the device overwrites them. Throws Error if it is
  // lost.
  void fetch_all();
  const device::Buffer* buffer() const { return buffer_.get(); }

  Likeliest likeliest(int row) const override;
  std::span<float> values(int row) override;

 private:
  std::shared_ptr<device::Device> device_;  // outlives the buffer
  std::shared_ptr<const device::Buffer> buffer_;
  std::size_t width_ = 0;
  std::vector<device::BestOfRow> best_;
  std::vector<float> values_;     // (rows, width), for rows that were fetched
  std::vector<bool> is_fetched_;  // by row
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_ON_DEVICE_DEVICE_LOGITS_H_
