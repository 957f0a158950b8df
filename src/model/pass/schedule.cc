// SPDX-License-Identifier: Apache-2.0
#include "model/pass/schedule.h"

#include <algorithm>
#include <variant>

namespace outrider {
namespace {

// A search over layers to skip requests one schedule each; a drafter two or three.
constexpr std::size_t kMaxKnown = 8;

// Two ops that divide the same rows among threads in the same way need no barrier between them.
bool is_fixed(Sharing sharing) { return sharing == Sharing::rows || sharing == Sharing::asked; }

// The accesses to buffers since the last barrier.
class Hazards {
 public:
  bool conflict(int buffer, Sharing sharing, bool writes) const {
    return std::any_of(done_.begin(), done_.end(), [&](const Access& access) {
      return access.buffer == buffer && (access.writes || writes) &&
             !(is_fixed(sharing) && access.sharing == sharing);
    });
  }
  void note(int buffer, Sharing sharing, bool writes) {
    done_.push_back({buffer, sharing, writes});
  }
  void clear() { done_.clear(); }

 private:
  struct Access {
    int buffer;
    Sharing sharing;
    bool writes;
  };
  std::vector<Access> done_;
};

}  // namespace

std::vector<Step> schedule(const PassList& list, std::span<const int> skip_layers,
                           bool without_output) {
  std::vector<Step> steps;
  Hazards hazards;
  for (const Op& op : list.ops) {
    if (without_output && op.output) continue;
    if (std::binary_search(skip_layers.begin(), skip_layers.end(), op.layer)) continue;
    bool barrier = false;
    for_each_access(op, [&](int buffer, Sharing sharing, bool writes) {
      barrier = barrier || hazards.conflict(buffer, sharing, writes);
    });
    if (barrier) hazards.clear();
    for_each_access(op, [&](int buffer, Sharing sharing, bool writes) {
      hazards.note(buffer, sharing, writes);
    });
    steps.push_back({.op = &op, .barrier = barrier, .prefetch = nullptr});
  }
  // Backwards, to find the next product after each barrier.
  const Matrix* next = nullptr;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (const auto* product = std::get_if<op::Multiply>(&step->op->what)) {
      next = product->products[0].matrix;
    } else if (std::holds_alternative<op::MultiplyExperts>(step->op->what) ||
               std::holds_alternative<op::MultiplyHeads>(step->op->what)) {
      next = nullptr;  // experts are unknown until rows have chosen; heads' matrices are small
    }
    step->prefetch = next;
  }
  return steps;
}

int count_barriers(const std::vector<Step>& steps) {
  return static_cast<int>(
      std::count_if(steps.begin(), steps.end(), [](const Step& step) { return step.barrier; }));
}

const std::vector<Step>& Schedules::of(std::span<const int> skip_layers, bool without_output) {
  for (const Known& known : known_) {
    if (known.without_output == without_output &&
        std::equal(known.skip_layers.begin(), known.skip_layers.end(), skip_layers.begin(),
                   skip_layers.end())) {
      return known.steps;
    }
  }
  if (known_.size() == kMaxKnown) known_.erase(known_.begin());
  known_.push_back({.skip_layers = {skip_layers.begin(), skip_layers.end()},
                    .without_output = without_output,
                    .steps = schedule(*list_, skip_layers, without_output)});
  return known_.back().steps;
}

}  // namespace outrider
