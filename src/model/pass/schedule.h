// Where the threads of a pass wait for one another, and which weights they prefetch meanwhile:
// derived from what the ops of a list read and write.
#ifndef OUTRIDER_MODEL_PASS_SCHEDULE_H_
#define OUTRIDER_MODEL_PASS_SCHEDULE_H_

#include <span>
#include <vector>

#include "model/pass/op.h"

namespace outrider {

struct Step {
  const Op* op = nullptr;
  bool barrier = false;              // before the op
  const Matrix* prefetch = nullptr;  // with a barrier: what the team multiplies with next, or null
};

// The ops of a list, but those of the layers in skip_layers (ascending) and, without_output, those
// that make logits. A barrier stands before an op that reads what threads wrote, or writes what
// threads read or wrote, since the last barrier, unless both ops share out the same rows in the
// same way. A first op has no barrier: the team begins together.
std::vector<Step> schedule(const PassList& list, std::span<const int> skip_layers,
                           bool without_output);

int count_barriers(const std::vector<Step>& steps);

// A list with its schedules, each made when it is first asked for. Not thread-safe.
class Schedules {
 public:
  explicit Schedules(const PassList& list) : list_(&list) {}
  // The steps stay until the next call. Throws std::bad_alloc.
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
