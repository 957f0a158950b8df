// What a sequence keeps of its model's recurrent layers: their state at the last kept token, the
// inputs of its pending nodes, and earlier states to go back to.
//
// The state is never changed by a pass: keep() replays the accepted nodes' inputs, and what was
// rejected leaves no trace. A state may be shared with forks and snapshots; whoever changes it
// takes a copy first (KvCache::own, of the table of states). Not thread-safe, except that inputs of
// different nodes and layers may be written from many threads while no page changes hands.
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
  // The cache has recurrent layers, and outlives the part.
  explicit RecurrentPart(KvCache& cache);

  // The same kept tokens, and no pending node.
  RecurrentPart fork() const;

  // The slots that a pass over n_new nodes behind n_pending writes to, sooner or later.
  void add_ranges(int n_pending, int n_new, std::vector<SlotRange>& ranges);
  // The state's alone, for keep().
  void add_state_range(std::vector<SlotRange>& ranges);
  // Pages of each group (n_groups) that the cache would come by for that.
  void count_pages(int n_pending, int n_new, std::span<int> n_needed) const;
  // After own() of add_ranges(): the state before a first token is 0.
  void begin();

  // (input_width) of a pending node, and (state_width) at the last kept token, in one layer.
  float* inputs(int node, int layer) const;
  const float* state(int layer) const { return state_of(layer); }

  // Replays the nodes' inputs, in order, behind n_kept tokens; the state is this part's own. Takes
  // a snapshot at every border on the way, where memory is left.
  void keep(std::span<const int> path, int n_kept);
  void drop_pending() { inputs_.drop_beyond(0); }

  // Of n_kept tokens: the most that are at most n_tokens and whose state is there.
  int reachable(int n_tokens, int n_kept) const;
  // To what reachable() said.
  void rewind(int n_tokens, int n_kept);

  // As KvSequence has them, of n_kept tokens: the state and, where the text is longer than a page,
  // that at the border behind which its last token lies, so that a reader may check the text by
  // running its end. save() throws Error where the latter has given way to tokens, or to later ones
  // before a rewinding to n_kept itself; load() is of a part that keeps nothing yet.
  void save(int n_kept, const ByteSink& write) const;
  void load(int n_kept, const ByteSource& read);

  // Snapshots give way to tokens: bytes that would be left if this part's were given up, and doing
  // so. drop_snapshots() says whether there was one.
  std::size_t snapshot_bytes() const;
  bool drop_snapshots();
  const StateSnapshots& snapshots() const { return snapshots_; }

 private:
  RecurrentPart(KvCache& cache, PageTable state, StateSnapshots snapshots, bool has_state);
  float* state_of(int layer) const;
  void replay(std::span<const int> nodes);
  void take_snapshot(int n_tokens);

  KvCache* cache_;
  PageTable state_;   // its one slot: the state at the last kept token
  PageTable inputs_;  // slots are pending nodes
  StateSnapshots snapshots_;
  bool has_state_ = false;  // false: its page, if there is one, is still to become 0
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_RECURRENT_PART_H_
