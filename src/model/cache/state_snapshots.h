// States of one sequence's recurrent layers at earlier places: multiples of kPageTokens tokens,
// which a sequence can be rewound to. A recurrent layer cannot go back by itself.
//
// Counted in pages of 64 tokens, the snapshot at border b = 2^k m (m odd) stays until the text has
// come to b + 2^(k+1). So one of every power of two is there, and their number grows with the
// logarithm of the text: 12 at 131072 tokens, 19 at the longest context that there may be
// (check_config). All borders of the last 2^(k+1) pages that are multiples of 2^k are among them:
// to go back by d pages runs less than 3 d pages again. Rewinding thins no further, and so a text
// that grows again behind a rewinding may have to go back further than that once.
//
// Bytes are a PageStore's. The pool outlives the snapshots. Not thread-safe.
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

  // The same pages, which both use from now on.
  StateSnapshots fork() const;

  // Gives up what need not stay once the text has come to that border.
  void thin(int n_tokens);
  // After thin(), the snapshot at that border, behind all others, with the caller's use of its
  // page.
  void add(const StateSnapshot& snapshot) { snapshots_.push_back(snapshot); }
  // The last one of at most so many tokens, or null. Valid until the next change.
  const StateSnapshot* last_until(int n_tokens) const;
  // Gives up those of more tokens.
  void drop_beyond(int n_tokens);

  const std::vector<StateSnapshot>& all() const { return snapshots_; }  // ascending
  // Pages that nobody else uses.
  int n_own_pages() const;

 private:
  PagePool* pool_;
  std::vector<StateSnapshot> snapshots_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_STATE_SNAPSHOTS_H_
