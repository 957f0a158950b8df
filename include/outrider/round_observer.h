// SPDX-License-Identifier: Apache-2.0
// What a batch did in a round, for traces and metrics (BatchOptions::observer).
#ifndef OUTRIDER_ROUND_OBSERVER_H_
#define OUTRIDER_ROUND_OBSERVER_H_

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

namespace outrider {

using RoundTime = std::chrono::steady_clock::time_point;

// The drafts of one drafter.
struct RoundDraft {
  std::string_view drafter = {};  // its spec
  RoundTime began = {};
  RoundTime ended = {};
};

// One text's part of a round: prompt tokens were run, or the text decoded.
struct RoundText {
  std::int64_t id = 0;  // its RequestId
  RoundTime asked = {};
  int prompt_rows = 0;  // prompt tokens that were run, without logits; 0: it decoded
  int drafted = 0;      // tokens
  int depth = 0;        // of the deepest drafted token
  int accepted = 0;     // drafted tokens that were accepted
  int emitted = 0;      // tokens that were added to it
};

// One pass of the target with the steps around it. The times ascend; each step lasts until the
// next.
struct RoundRecord {
  RoundTime began = {};     // planning: which texts take part, how deep they draft
  RoundTime planned = {};   // drafting
  RoundTime drafted = {};   // the target's pass
  RoundTime passed = {};    // verification
  RoundTime verified = {};  // committing tokens, informing drafters
  RoundTime ended = {};
  int rows = 0;                // of the pass
  int prompt_rows = 0;         // prompt tokens among them
  double experts_a_layer = 0;  // experts that the pass read per layer, on average; 0: no experts
  std::span<const RoundDraft> drafts = {};  // of the drafters that were asked, in order
  std::span<const RoundText> texts = {};
  // Texts preempted since the previous round: they wait, and are run again.
  std::span<const std::int64_t> preempted = {};
};

struct EndedText {
  std::int64_t id = 0;
  RoundTime asked = {};
  RoundTime ended = {};
  bool failed = false;  // ended by an error
};

// The batch calls both functions on the thread that steps it. They must not throw and must not call
// the batch. Their arguments are valid during the call.
class RoundObserver {
 public:
  virtual ~RoundObserver() = default;
  // Called after each round, except one that ends its texts by an error.
  virtual void on_round(const RoundRecord& round) = 0;
  // Called once for each submitted text.
  virtual void on_end(const EndedText& text) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_ROUND_OBSERVER_H_
