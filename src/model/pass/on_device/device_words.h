// SPDX-License-Identifier: Apache-2.0
// The small buffer with what varies from pass to pass: the number of rows, the places of their keys
// and values, what they read, and their angles. Programs are recorded once per shape and find
// everything at fixed places.
#ifndef OUTRIDER_MODEL_PASS_ON_DEVICE_DEVICE_WORDS_H_
#define OUTRIDER_MODEL_PASS_ON_DEVICE_DEVICE_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/attend_steps.h"
#include "device/cache_steps.h"
#include "device/device.h"
#include "model/cache/device_page_store.h"
#include "model/pass/op.h"
#include "model/pass/pass_plan.h"

namespace outrider {

// The limits for which a program is recorded: rows, rows with logits, pages of a sequence, and
// slots that are not in place. Powers of two, so that few programs serve all passes.
struct DevicePassShape {
  int max_rows = 1;
  int max_asked = 1;
  int max_pages = 1;
  int max_slots = 1;

  static DevicePassShape of(const PassPlan& plan);
  int max_splits() const { return kernels::splits_of(max_pages * kPageTokens); }
  bool operator==(const DevicePassShape&) const = default;
};

// The byte offset of everything, aligned for ranges; for the list's windows, the cache's groups and
// the RoPE tables, in order.
class DeviceWords {
 public:
  DeviceWords(const PassList& list, const KvCache& cache, const DevicePassShape& shape);

  std::size_t n_bytes() const { return n_bytes_; }
  // Ranges within the buffer. The window is an attention's.
  device::Rows rows(const device::Buffer& buffer) const;
  device::Rows asked_rows(const device::Buffer& buffer) const;
  device::Range asked(const device::Buffer& buffer) const;
  device::Range attend_rows(const device::Buffer& buffer, int window) const;
  device::Range slots(const device::Buffer& buffer) const;
  device::Range pages(const device::Buffer& buffer, int group) const;
  device::Range places(const device::Buffer& buffer, int group) const;
  device::Range cosines(const device::Buffer& buffer, int rope) const;
  device::Range sines(const device::Buffer& buffer, int rope) const;

  // Writes the values for this pass, whose nodes are appended: the used beginning of the buffer.
  // Allocates only while passes grow.
  void write(const PassPlan& plan, const PassList& list, const DevicePageStore& store,
             std::vector<std::byte>& bytes) const;

 private:
  struct Place {
    std::size_t at = 0;
    std::size_t n_bytes = 0;
    device::Range in(const device::Buffer& buffer) const { return {&buffer, at, n_bytes}; }
  };
  struct OfWindow {
    int window;
    Place rows;
  };
  struct OfGroup {
    int cache_layer;  // one of its layers
    Place pages;
    Place places;
  };
  struct OfRope {
    std::size_t half;
    Place cosines;
    Place sines;
  };
  Place add(std::size_t n_words);
  const OfWindow& of_window(int window) const;

  DevicePassShape shape_;
  std::size_t n_bytes_ = 0;
  Place facts_;
  Place asked_facts_;
  Place asked_;
  std::vector<OfWindow> windows_;
  std::vector<OfGroup> groups_;
  std::vector<OfRope> ropes_;
  Place slots_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_ON_DEVICE_DEVICE_WORDS_H_
