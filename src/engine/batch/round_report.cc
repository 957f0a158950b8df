// SPDX-License-Identifier: Apache-2.0
#include "engine/batch/round_report.h"

#include <algorithm>
#include <chrono>

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds that are differences of clock readings: rounding restores the exact ticks.
Clock::duration ticks(double seconds) {
  return std::chrono::round<Clock::duration>(std::chrono::duration<double>(seconds));
}

int depth_of(const DraftTree& tree) {
  int depth = 0;
  for (int node = 1; node <= tree.n_drafted(); ++node) {
    depth = std::max(depth, tree.node(node).depth);
  }
  return depth;
}

}  // namespace

void RoundReport::begin() {
  texts_.clear();
  drafts_.clear();
  record_ = {.began = Clock::now()};
}

void RoundReport::add_text(const StreamShare& share, RoundTime asked) {
  const Stream& stream = *share.stream;
  texts_.push_back({.id = stream.id,
                    .asked = asked,
                    .prompt_rows = static_cast<int>(share.n_to_run),
                    .accepted = static_cast<int>(stream.counts.accepted),
                    .emitted = static_cast<int>(stream.tokens.size())});
}

const RoundRecord& RoundReport::finish(
    std::span<const StreamShare> shares, const Decoder& decoder, const RoundTimes& times,
    const std::function<std::string_view(const Drafter&)>& spec_of) {
  record_.ended = Clock::now();
  record_.planned = times.began;
  record_.drafted = record_.planned + ticks(times.draft);
  record_.passed = record_.drafted + ticks(times.forward);
  record_.verified = record_.passed + ticks(times.verify);
  for (const Decoder::DrafterShare& share : decoder.drafters()) {
    if (share.began == RoundTime()) continue;  // it was not asked
    drafts_.push_back({.drafter = spec_of(*share.drafter),
                       .began = share.began,
                       .ended = share.began + ticks(share.seconds)});
  }
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const Stream& stream = *shares[i].stream;
    RoundText& text = texts_[i];
    text.accepted = static_cast<int>(stream.counts.accepted) - text.accepted;
    text.emitted = static_cast<int>(stream.tokens.size()) - text.emitted;
    if (text.prompt_rows > 0) {
      record_.prompt_rows += text.prompt_rows;
      record_.rows += text.prompt_rows;
    } else {
      text.drafted = stream.tree.n_drafted();
      text.depth = depth_of(stream.tree);
      record_.rows += stream.tree.n_nodes();
    }
  }
  reported_.swap(preempted_);
  preempted_.clear();
  record_.experts_a_layer = decoder.experts_a_layer();
  record_.drafts = drafts_;
  record_.texts = texts_;
  record_.preempted = reported_;
  return record_;
}

}  // namespace outrider
