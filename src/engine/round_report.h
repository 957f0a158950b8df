// A round of a batch as its observer sees it.
#ifndef OUTRIDER_ENGINE_ROUND_REPORT_H_
#define OUTRIDER_ENGINE_ROUND_REPORT_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "outrider/round_observer.h"
#include "speculate/decoder.h"

namespace outrider {

// Once warm it allocates nothing. Not thread-safe.
class RoundReport {
 public:
  // Before the plan of a round.
  void begin();
  // Of the round, in the order of its shares: before the pass.
  void add_text(const StreamShare& share, RoundTime asked);
  // At any time: a text has given up its memory.
  void add_preempted(std::int64_t id) { preempted_.push_back(id); }
  // Behind the round. spec_of: what a drafter is called. The record is valid until the next
  // begin().
  const RoundRecord& finish(std::span<const StreamShare> shares, const Decoder& decoder,
                            const RoundTimes& times,
                            const std::function<std::string_view(const Drafter&)>& spec_of);

 private:
  RoundRecord record_;
  std::vector<RoundText> texts_;  // until finish(), accepted and emitted are the text's before it
  std::vector<RoundDraft> drafts_;
  std::vector<std::int64_t> preempted_;  // since the last record
  std::vector<std::int64_t> reported_;   // those in it
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_ROUND_REPORT_H_
