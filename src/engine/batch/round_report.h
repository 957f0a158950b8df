// SPDX-License-Identifier: Apache-2.0
// Builds the record of a batch's round for its observer.
#ifndef OUTRIDER_ENGINE_BATCH_ROUND_REPORT_H_
#define OUTRIDER_ENGINE_BATCH_ROUND_REPORT_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "outrider/round_observer.h"
#include "speculate/decoder.h"

namespace outrider {

// Allocates nothing once warm. Not thread-safe.
class RoundReport {
 public:
  // Called before the plan of a round.
  void begin();
  // Called before the pass for each text of the round, in the order of its shares.
  void add_text(const StreamShare& share, RoundTime asked);
  // Called at any time for a preempted text.
  void add_preempted(std::int64_t id) { preempted_.push_back(id); }
  // Called after the round. spec_of: a drafter's spec. The record is valid until the next begin().
  const RoundRecord& finish(std::span<const StreamShare> shares, const Decoder& decoder,
                            const RoundTimes& times,
                            const std::function<std::string_view(const Drafter&)>& spec_of);

 private:
  RoundRecord record_;
  std::vector<RoundText> texts_;  // accepted, emitted: totals until finish()
  std::vector<RoundDraft> drafts_;
  std::vector<std::int64_t> preempted_;  // since the last record
  std::vector<std::int64_t> reported_;   // those in it
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_BATCH_ROUND_REPORT_H_
