// What a batch did in a round, for traces and meters (BatchOptions::observer).
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

// A text's part of a round: tokens of its prompt were run, or it was decoded.
struct RoundText {
  std::int64_t id = 0;  // its RequestId
  RoundTime asked = {};
  int prompt_rows = 0;  // tokens that were run, without logits; 0: it was decoded
  int drafted = 0;      // tokens
  int depth = 0;        // of the deepest drafted token
  int accepted = 0;     // drafted tokens that stand in the text
  int emitted = 0;      // tokens that were added to it
};

// One pass of the target and what is around it. The times ascend; each step lasts to the next one.
struct RoundRecord {
  RoundTime began = {};     // the plan: which texts take part, how deep they draft
  RoundTime planned = {};   // the drafts
  RoundTime drafted = {};   // the pass of the target
  RoundTime passed = {};    // the verdicts
  RoundTime verified = {};  // tokens are committed, drafters informed
  RoundTime ended = {};
  int rows = 0;                // of the pass
  int prompt_rows = 0;         // among them
  double experts_a_layer = 0;  // that the pass read, of a layer on average; 0: no experts
  std::span<const RoundDraft> drafts = {};  // of drafters that were asked, one after the other
  std::span<const RoundText> texts = {};
  // Texts that have given up their memory since the round before: they wait, and are run again.
  std::span<const std::int64_t> preempted = {};
};

struct EndedText {
  std::int64_t id = 0;
  RoundTime asked = {};
  RoundTime ended = {};
  bool failed = false;  // by an error
};

// Both functions are called on the thread that steps the batch. They may not throw, and may not
// call the batch. What they are given is valid during the call.
class RoundObserver {
 public:
  virtual ~RoundObserver() = default;
  // Behind each round, but for one that ends its texts by an error.
  virtual void on_round(const RoundRecord& round) = 0;
  // For each text that was submitted, once.
  virtual void on_end(const EndedText& text) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_ROUND_OBSERVER_H_
