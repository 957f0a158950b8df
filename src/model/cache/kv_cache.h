// SPDX-License-Identifier: Apache-2.0
// The KV cache of one model: its groups of layers, their pages and the pages' bytes. All sequences
// (kv_sequence.h) of the model share it.
//
// Not thread-safe, except that bytes may be read and written as PageStore says.
#ifndef OUTRIDER_MODEL_CACHE_KV_CACHE_H_
#define OUTRIDER_MODEL_CACHE_KV_CACHE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/cache/cache_group.h"
#include "model/cache/page_pool.h"
#include "model/cache/page_store.h"
#include "model/cache/page_table.h"

namespace outrider {

// Slots of one group that a sequence is about to write to.
struct SlotRange {
  PageTable* table;
  int begin;
  int end;     // exclusive
  int n_used;  // slots of the sequence that are in use
};

class KvCache {
 public:
  // layers: one entry for each layer of the model. max_bytes: of all pages together. Throws Error
  // for impossible layers, and UsageError if max_bytes is too small for a page of every group.
  // make_store: creates the store of the pages' bytes; empty: in this machine's memory. limit: the
  // name of max_bytes in messages.
  static constexpr const char* kLimit = "--kv-memory";
  KvCache(std::span<const LayerCache> layers, kernels::KvKind kind,
          std::size_t max_bytes = PagePool::kUnbounded, const MakePageStore& make_store = {},
          std::string limit = kLimit);

  std::span<const CacheGroup> groups() const { return groups_; }
  const KvShape& shape(int layer) const { return group_of(layer).shape; }
  const CacheGroup& group_of(int layer) const {
    return groups_[static_cast<std::size_t>(place(layer).group)];
  }
  // Bytes of keys and values of one token of a text in all layers, padding of blocks included.
  std::size_t token_bytes() const;
  // Bytes of all recurrent layers together: the state of a sequence at one token, and the inputs of
  // one pending node. 0 if there are none.
  std::size_t state_bytes() const;
  std::size_t input_bytes() const;
  // Whether texts read an encoder's output (CacheSide::cross).
  bool has_encoder() const;
  // The group of states, or -1; the group of inputs is the next one.
  int state_group() const { return state_group_; }

  // The location of a layer: its group, and its offset in the group's pages. For a recurrent layer:
  // that of its state, and inputs_at_bytes in pages of the next group.
  struct LayerPlace {
    int group;
    std::size_t at_bytes;
    std::size_t inputs_at_bytes = 0;
  };
  const LayerPlace& place(int layer) const { return places_[static_cast<std::size_t>(layer)]; }

  // The kernels and threads that replay the inputs of kept nodes. Bits do not depend on them.
  // Default: the scalar table, one thread.
  struct Replay {
    const kernels::KernelTable* table;
    int n_threads;
  };
  const Replay& replay() const { return replay_; }
  void set_replay(const Replay& replay) { replay_ = replay; }

  PagePool& pool() { return pool_; }
  const PagePool& pool() const { return pool_; }
  PageStore& store() { return *store_; }
  const PageStore& store() const { return *store_; }

  // Makes these slots of the tables writable: adds new pages after the last one, and copies the
  // used slots of shared pages. All or nothing: throws Error (with the operation and what was
  // needed) if the budget does not hold them, std::bad_alloc, or what the store throws; no slot in
  // use has changed then. No two ranges may be of one table.
  void own(std::span<const SlotRange> ranges, std::string_view operation);
  // A page of the group with one user and undefined contents; kNoPage if the budget or the system's
  // memory does not hold it. Does not throw.
  PageId try_acquire(int group) noexcept;
  // The number of pages that own() would acquire for these slots of a table. A page that several
  // tables share counts for each of them.
  int n_pages_to_own(const PageTable& table, int begin, int end) const;
  // A reusable list to fill for own(), so that no round allocates one.
  std::vector<SlotRange>& ranges() { return ranges_; }
  // A reusable list (n_groups) for counting pages; own() uses it, too.
  std::vector<int>& n_needed() { return n_needed_; }

 private:
  // A page that own() must acquire.
  struct Step {
    PageTable* table;
    std::size_t index;
    PageId shared;  // copied from, already released; or kNoPage: there is none at this index
    int n_copied;   // slots
    PageId page;
  };

  void find_steps(std::span<const SlotRange> ranges);
  void acquire_pages(std::string_view operation);
  PageId acquire(int group);
  void undo(std::size_t n_done);  // of the steps

  std::vector<CacheGroup> groups_;
  std::vector<LayerPlace> places_;  // (n_layers)
  int state_group_ = -1;
  Replay replay_;
  PagePool pool_;
  std::string limit_;  // the name of the pool's limit in messages
  std::unique_ptr<PageStore> store_;

  // Reused from call to call.
  std::vector<SlotRange> ranges_;
  std::vector<Step> steps_;
  std::vector<int> n_needed_;  // (n_groups) pages
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_KV_CACHE_H_
