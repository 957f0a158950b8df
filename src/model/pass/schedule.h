// SPDX-License-Identifier: Apache-2.0
// Where the threads of a pass wait for each other, and which weights they prefetch meanwhile:
// derived from what the list's ops read and write.
#ifndef OUTRIDER_MODEL_PASS_SCHEDULE_H_
#define OUTRIDER_MODEL_PASS_SCHEDULE_H_

#include <span>
#include <vector>

#include "model/pass/op.h"

namespace outrider {

struct Step {
  const Op* op = nullptr;
  bool barrier = false;              // before the op
  const Matrix* prefetch = nullptr;  // with a barrier: the next matrix to multiply with, or null
};

// The ops of a list, except those of the layers in skip_layers (ascending) and, if without_output,
// those that compute logits. There is a barrier before an op that reads what threads wrote, or
// writes what threads read or wrote, since the last barrier, unless both ops divide the same rows
// in the same way. The first op has no barrier: the team begins together.
std::vector<Step> schedule(const PassList& list, std::span<const int> skip_layers,
                           bool without_output);

int count_barriers(const std::vector<Step>& steps);

// A list with its schedules, each made on first use. Not thread-safe.
class Schedules {
 public:
  explicit Schedules(const PassList& list) : list_(&list) {}
  // The steps are valid until the next call. Throws std::bad_alloc.
  const std::vector<Step>& of(std::span<const int> skip_layers, bool without_output);

 private:
  struct Known {
    std::vector<int> skip_layers;
    bool without_output;
    std::vector<Step> steps;
  };
  const PassList* list_;
  std::vector<Known> known_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_SCHEDULE_H_
