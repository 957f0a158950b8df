// SPDX-License-Identifier: Apache-2.0
#include "model/cache/state_snapshots.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "model/cache/cache_group.h"

namespace outrider {
namespace {

// The number of powers of two among the page boundaries of the longest context, 2^24 tokens.
constexpr std::size_t kMaxSnapshots = 19;
static_assert((1 << (kMaxSnapshots - 1)) * kPageTokens == 1 << 24);

}  // namespace

StateSnapshots::StateSnapshots(PagePool& pool) : pool_(&pool) { snapshots_.reserve(kMaxSnapshots); }

StateSnapshots::StateSnapshots(StateSnapshots&& other) noexcept
    : pool_(other.pool_), snapshots_(std::exchange(other.snapshots_, {})) {}

StateSnapshots StateSnapshots::fork() const {
  StateSnapshots copy(*pool_);
  for (const StateSnapshot& snapshot : snapshots_) {
    pool_->share(snapshot.page);
    copy.add(snapshot);
  }
  return copy;
}

void StateSnapshots::thin(int n_tokens) {
  const auto end =
      std::remove_if(snapshots_.begin(), snapshots_.end(), [&](const StateSnapshot& snapshot) {
        const auto border = static_cast<unsigned>(snapshot.n_tokens / kPageTokens);
        const int power = std::countr_zero(border);
        const bool stays = (n_tokens - snapshot.n_tokens) / kPageTokens < 1 << (power + 1);
        if (!stays) pool_->release(snapshot.page);
        return !stays;
      });
  snapshots_.erase(end, snapshots_.end());
}

const StateSnapshot* StateSnapshots::last_until(int n_tokens) const {
  const auto found = std::find_if(snapshots_.rbegin(), snapshots_.rend(),
                                  [&](const StateSnapshot& it) { return it.n_tokens <= n_tokens; });
  return found == snapshots_.rend() ? nullptr : &*found;
}

void StateSnapshots::drop_beyond(int n_tokens) {
  while (!snapshots_.empty() && snapshots_.back().n_tokens > n_tokens) {
    pool_->release(snapshots_.back().page);
    snapshots_.pop_back();
  }
}

int StateSnapshots::n_own_pages() const {
  return static_cast<int>(
      std::count_if(snapshots_.begin(), snapshots_.end(),
                    [this](const StateSnapshot& it) { return !pool_->is_shared(it.page); }));
}

}  // namespace outrider
