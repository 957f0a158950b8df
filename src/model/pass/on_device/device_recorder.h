// SPDX-License-Identifier: Apache-2.0
// Translates a pass's ops into steps of a device (device/step.h). The device derives barriers.
#ifndef OUTRIDER_MODEL_PASS_ON_DEVICE_DEVICE_RECORDER_H_
#define OUTRIDER_MODEL_PASS_ON_DEVICE_DEVICE_RECORDER_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/attend_steps.h"
#include "device/step.h"
#include "model/cache/kv_cache.h"
#include "model/pass/on_device/device_memory.h"
#include "model/pass/on_device/device_words.h"
#include "model/pass/op.h"
#include "model/pass/schedule.h"

namespace outrider {

// The places of rows on the device, for passes of one shape.
class DeviceRows {
 public:
  // skips_layers: such passes write their logits to a separate place, so that a drafter that is a
  // part of its target does not overwrite the target's.
  DeviceRows(const PassList& list, const DevicePassShape& shape, int n_features, bool skips_layers);

  // Allocates them. Throws Error if the device's memory is full.
  void require(DeviceScratch& scratch) const;

  // For a buffer of the list, or kLogits: its floats, and the forms that products read.
  device::Range floats(const DeviceScratch& scratch, int buffer) const;
  device::QuantizedRanges quantized(const DeviceScratch& scratch, int buffer) const;
  int max_rows(int buffer) const;
  int logit_width() const { return static_cast<int>(logit_width_); }
  std::shared_ptr<const device::Buffer> shared_logits(const DeviceScratch& scratch) const;
  // device::BestOfRow for the rows of logits, and for their parts.
  device::Range best(const DeviceScratch& scratch) const;
  device::Range best_parts(const DeviceScratch& scratch) const;
  // The rows of a feature, (max_rows, width of the stream).
  device::Range feature(const DeviceScratch& scratch, int place) const;
  // Intermediate results of an attention, shared by all of them.
  device::Range sums(const DeviceScratch& scratch) const;
  device::Range states(const DeviceScratch& scratch) const;

 private:
  std::size_t logit_piece() const;
  std::size_t best_bytes() const;
  std::size_t best_part_bytes() const;
  std::size_t float_bytes(int buffer) const;
  std::size_t feature_bytes() const;  // of one feature and its padding

  const PassList* list_;
  DevicePassShape shape_;
  int n_features_;
  bool skips_layers_;
  std::size_t logit_width_ = 0;
  std::size_t n_sum_floats_ = 0;    // for the widest attention
  std::size_t n_state_floats_ = 0;  // for the widest attention
};

// The input of recording. Whatever the list refers to is uploaded, if it is not there yet.
struct DeviceRecording {
  const PassList* list;
  const KvCache* cache;
  const DevicePageStore* store;
  const DeviceWords* words;
  const device::Buffer* word_buffer;
  const DeviceRows* rows;
  const DeviceScratch* scratch;
  DeviceWeights* weights;
  int max_pages = 1;
  int max_splits = 1;
  std::string device_name;  // for messages

  // Throws UsageError, which names the op, for one that devices cannot run; Error if the device's
  // memory cannot hold the weights.
  std::vector<device::Step> steps_of(const std::vector<Step>& ops,
                                     std::span<const int> feature_layers) const;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_ON_DEVICE_DEVICE_RECORDER_H_
