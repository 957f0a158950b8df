// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/merging/merge_queue.h"

#include <algorithm>
#include <functional>

namespace outrider {
namespace {

// From here on sorted lists are faster than the heap alone; for shorter words their disadvantage is
// that ranks are far apart in memory.
constexpr std::size_t kManySymbols = 2048;

std::uint64_t order_of(MergeQueue::Candidate candidate) {
  return std::uint64_t{candidate.rank} << 32 | candidate.left;
}

}  // namespace

void MergeQueue::start(std::size_t n_symbols, std::uint32_t n_ranks) {
  has_lists_ = n_symbols >= kManySymbols;
  if (has_lists_ && last_of_rank_.size() < n_ranks) last_of_rank_.resize(n_ranks, kNone);
  rank_ = -1;
}

void MergeQueue::push(Candidate candidate) {
  ++n_pushed_;
  if (!has_lists_ || candidate.rank <= rank_) {
    heap_.push_back(order_of(candidate));
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    return;
  }
  std::uint32_t& last = last_of_rank_[candidate.rank];
  if (last == kNone) {
    ranks_.push_back(candidate.rank);
    std::push_heap(ranks_.begin(), ranks_.end(), std::greater<>());
  }
  waiting_.push_back({candidate.left, last});
  last = static_cast<std::uint32_t>(waiting_.size() - 1);
}

bool MergeQueue::start_round() {
  if (ranks_.empty()) {
    waiting_.clear();
    return false;
  }
  std::pop_heap(ranks_.begin(), ranks_.end(), std::greater<>());
  rank_ = ranks_.back();
  ranks_.pop_back();
  std::uint32_t& last = last_of_rank_[static_cast<std::size_t>(rank_)];
  for (std::uint32_t i = last; i != kNone; i = waiting_[i].earlier) {
    round_.push_back(waiting_[i].left);
  }
  last = kNone;
  // Each earlier round has added them from left to right.
  if (!std::is_sorted(round_.begin(), round_.end(), std::greater<>())) {
    std::sort(round_.begin(), round_.end(), std::greater<>());
  }
  return true;
}

bool MergeQueue::pop(Candidate& candidate) {
  if (heap_.empty() && round_.empty() && !start_round()) return false;
  const bool from_round =
      !round_.empty() && (heap_.empty() || order_of({static_cast<std::uint32_t>(rank_),
                                                     round_.back()}) <= heap_.front());
  if (from_round) {
    candidate = {static_cast<std::uint32_t>(rank_), round_.back()};
    round_.pop_back();
    return true;
  }
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  candidate = {static_cast<std::uint32_t>(heap_.back() >> 32),
               static_cast<std::uint32_t>(heap_.back())};
  heap_.pop_back();
  return true;
}

}  // namespace outrider
