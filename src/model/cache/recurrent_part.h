// SPDX-License-Identifier: Apache-2.0
// A sequence's data of recurrent layers: the state at the last kept token, the inputs of pending
// nodes, and earlier states for rewind().
//
// A pass never changes the state: keep() replays the accepted nodes' inputs, and rejected ones have
// no effect. A state may be shared with forks and snapshots; it is copied before a change
// (KvCache::own, on the table of states). Not thread-safe, except that inputs of different nodes
// and layers may be written from many threads while no page is acquired or released.
#ifndef OUTRIDER_MODEL_CACHE_RECURRENT_PART_H_
#define OUTRIDER_MODEL_CACHE_RECURRENT_PART_H_

#include <span>
#include <vector>

#include "model/cache/kv_cache.h"
#include "model/cache/page_table.h"
#include "model/cache/state_snapshots.h"
#include "model/language_model.h"

namespace outrider {

class RecurrentPart {
 public:
  // The cache must have recurrent layers and outlive the part.
  explicit RecurrentPart(KvCache& cache);

  // A copy with the same kept tokens and without pending nodes.
  RecurrentPart fork() const;

  // Adds the slots that a pass over n_new nodes after n_pending writes to, now or later.
  void add_ranges(int n_pending, int n_new, std::vector<SlotRange>& ranges);
  // Adds the state's slot alone, for keep().
  void add_state_range(std::vector<SlotRange>& ranges);
  // Counts the pages of each group (n_groups) that own() would acquire for that.
  void count_pages(int n_pending, int n_new, std::span<int> n_needed) const;
  // Called after own() of add_ranges(): sets the state before a first token to 0.
  void begin();

  // In one layer: the inputs (input_width) of a pending node, and the state (state_width) at the
  // last kept token.
  float* inputs(int node, int layer) const;
  const float* state(int layer) const { return state_of(layer); }

  // Replays the nodes' inputs, in order, after n_kept tokens. The state must not be shared. Takes a
  // snapshot at every border on the way if memory is left.
  void keep(std::span<const int> path, int n_kept);
  void drop_pending() { inputs_.drop_beyond(0); }

  // The largest number of tokens that is at most n_tokens and whose state is available, given
  // n_kept kept tokens.
  int reachable(int n_tokens, int n_kept) const;
  // Rewinds to a result of reachable().
  void rewind(int n_tokens, int n_kept);

  // As in KvSequence, for n_kept tokens. Saves the state. If the text is longer than a page, it
  // also saves the state at the last border before the last token. A reader can then check the text
  // by running its end. save() throws Error if that snapshot was dropped for tokens, or by a rewind
  // to n_kept. load() requires an empty part.
  void save(int n_kept, const ByteSink& write) const;
  void load(int n_kept, const ByteSource& read);

  // Snapshots are dropped when tokens need memory: the bytes that would remain without this part's
  // snapshots; and their release. drop_snapshots() returns whether there were any.
  std::size_t snapshot_bytes() const;
  bool drop_snapshots();
  const StateSnapshots& snapshots() const { return snapshots_; }

 private:
  RecurrentPart(KvCache& cache, PageTable state, StateSnapshots snapshots, bool has_state);
  float* state_of(int layer) const;
  void replay(std::span<const int> nodes);
  void take_snapshot(int n_tokens);

  KvCache* cache_;
  PageTable state_;   // one slot: the state at the last kept token
  PageTable inputs_;  // slots are pending nodes
  StateSnapshots snapshots_;
  bool has_state_ = false;  // false: its page, if any, must still be set to 0
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_RECURRENT_PART_H_
