// SPDX-License-Identifier: Apache-2.0
// States of one sequence's recurrent layers at earlier positions, to which the sequence can be
// rewound. Positions are multiples of kPageTokens tokens. A recurrent layer cannot go back without
// a snapshot.
//
// Counted in pages of 64 tokens, the snapshot at border b = 2^k m (m odd) is kept until the text
// reaches b + 2^(k+1). So one of every power of two is kept, and the number grows with the
// logarithm of the text: 12 at 131072 tokens, 19 at the longest possible context (check_config).
// All borders of the last 2^(k+1) pages that are multiples of 2^k are among them, so going back by
// d pages runs less than 3 d pages again. Rewinding removes no more of them. So a text that grows
// again after a rewind may once have to go back further.
//
// Bytes are in a PageStore. The pool must outlive the snapshots. Not thread-safe.
#ifndef OUTRIDER_MODEL_CACHE_STATE_SNAPSHOTS_H_
#define OUTRIDER_MODEL_CACHE_STATE_SNAPSHOTS_H_

#include <vector>

#include "model/cache/page_pool.h"

namespace outrider {

struct StateSnapshot {
  int n_tokens;  // that the state has seen
  PageId page;
};

class StateSnapshots {
 public:
  // May throw std::bad_alloc; nothing else here allocates.
  explicit StateSnapshots(PagePool& pool);
  ~StateSnapshots() { drop_beyond(-1); }
  StateSnapshots(StateSnapshots&& other) noexcept;
  StateSnapshots& operator=(StateSnapshots&&) = delete;
  StateSnapshots(const StateSnapshots&) = delete;
  StateSnapshots& operator=(const StateSnapshots&) = delete;

  // A copy that shares the pages.
  StateSnapshots fork() const;

  // Releases the snapshots that are not needed once the text has reached that border.
  void thin(int n_tokens);
  // Called after thin(): adds the snapshot at that border, after all others, and takes over the
  // caller's use of its page.
  void add(const StateSnapshot& snapshot) { snapshots_.push_back(snapshot); }
  // The last snapshot of at most n_tokens tokens, or null. Valid until the next change.
  const StateSnapshot* last_until(int n_tokens) const;
  // Releases those of more tokens.
  void drop_beyond(int n_tokens);

  const std::vector<StateSnapshot>& all() const { return snapshots_; }  // ascending
  // Pages without other users.
  int n_own_pages() const;

 private:
  PagePool* pool_;
  std::vector<StateSnapshot> snapshots_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_STATE_SNAPSHOTS_H_
