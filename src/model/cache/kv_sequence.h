// SPDX-License-Identifier: Apache-2.0
// One sequence of a model: the tree of its tokens, a page table for each group of layers with keys,
// and the state of recurrent layers (recurrent_part.h).
//
// Slots are numbered as in TokenTree. Forks share pages; a sequence copies a shared page before it
// writes to it. Pages are acquired when slots are reserved, and released when they hold no token or
// lie before a window.
//
// In an encoder-decoder a text's sequence points to the encoder's sequence. Each has empty tables
// for the other's groups.
//
// Invariants: every page from which the sequence will read or write slots is in its tables; pages
// with pending nodes may be shared only if their kept slots alone are read; all tables that are not
// empty have the same number of pages, released ones included. Not thread-safe, except that slots
// may be read, and different slots written, from many threads while no page is acquired or
// released.
#ifndef OUTRIDER_MODEL_CACHE_KV_SEQUENCE_H_
#define OUTRIDER_MODEL_CACHE_KV_SEQUENCE_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/cache/cache_group.h"
#include "model/cache/kv_cache.h"
#include "model/cache/page_table.h"
#include "model/cache/recurrent_part.h"
#include "model/cache/token_tree.h"
#include "model/language_model.h"

namespace outrider {

// Positions before a window whose pages are kept. A sequence can be rewound by this number of
// tokens, as a drafter's is after a rejected draft, without loss. Drafts longer than a page are
// rare, and rewinding further costs time only: the window is run again.
inline constexpr int kRewindTokens = kPageTokens;

class KvSequence final : public Sequence {
 public:
  // In an encoder-decoder, the encoder's input is a separate sequence.
  enum class Role { text, encoder };
  explicit KvSequence(std::shared_ptr<KvCache> cache, Role role = Role::text);

  int n_kept() const override { return tree_.n_kept(); }
  int n_pending() const override { return tree_.n_pending(); }
  void keep(std::span<const int> path) override;
  // Returns n_tokens if every window still holds what a query after n_tokens reads; else 0. With
  // recurrent layers: the largest such number with a state (StateSnapshots).
  int rewind(int n_tokens) override;
  std::unique_ptr<Sequence> fork() const override;

  // Writes the kept tokens' keys, values and states as bytes, in pieces. Undefined memory is
  // written as 0, so equal sequences have equal bytes. Throws Error if there are pending nodes,
  // skipped layers or an encoder, and what `write` throws.
  void save(const ByteSink& write) const;
  // Loads into an empty sequence; `read` fills each piece. Throws Error if the bytes cannot be a
  // sequence of n_tokens of this cache, or its memory is used up, and what `read` throws; the
  // sequence is unusable then.
  void load(int n_tokens, const ByteSource& read);

  const KvCache* cache() const { return cache_.get(); }
  bool empty() const { return tree_.n_slots() == 0; }

  // The layers without which its tokens were run (ForwardRequest): those have no keys and values
  // here, and those of later layers are not the whole model's. Set while the sequence is empty, or
  // on a fork for passes without the last layers; the fork has keys and values there that are not
  // read.
  std::span<const int> skipped_layers() const { return skipped_layers_; }
  void set_skipped_layers(std::span<const int> layers) {
    skipped_layers_.assign(layers.begin(), layers.end());
  }

  // Releases the states for rewind(), if they take memory; rewind() to an earlier token then
  // returns 0.
  void drop_snapshots() {
    if (recurrent_) recurrent_->drop_snapshots();
  }

  // Tokens of the text that it began with (Prompt).
  int prompt_length() const { return prompt_length_; }
  void set_prompt_length(int n_tokens) { prompt_length_ = n_tokens; }

  // Opens an encoder's sequence for these tokens.
  static std::shared_ptr<KvSequence> open_encoder(std::shared_ptr<KvCache> cache,
                                                  std::span<const TokenId> tokens);
  // Called for a new text of an encoder-decoder, before its first token is run.
  void set_encoder(std::shared_ptr<KvSequence> encoder) { encoder_ = std::move(encoder); }
  // The encoder's sequence, empty until the encoder has run; null for decoders. Forks and other
  // texts may share it: it does not change after the encoder has run.
  KvSequence* encoder() const { return encoder_.get(); }
  // For an encoder's sequence: its input. Once that is kept, the encoder has run.
  std::span<const TokenId> input() const { return input_; }
  // Called when the whole input is pending: keeps it and releases the encoder's own keys and
  // values.
  void finish_encoder();

  // A hint: reserves memory for lists of n_slots slots, and takes no page. May throw
  // std::bad_alloc.
  void expect(int n_slots);
  // Ensures that n_new further slots have unshared pages and that append() will not allocate. No
  // visible change. Throws Error if the cache's memory is used up, or std::bad_alloc; nothing has
  // changed then.
  void ensure_slots(int n_new);
  // The same for several different sequences of one cache: for all or for none.
  struct Reservation {
    KvSequence* sequence;
    int n_new;
  };
  static void ensure_slots(std::span<const Reservation> reservations);
  // Whether ensure_slots() would find memory for these sequences, all of this cache. Passes must
  // run at most kPrefillRows rows of one sequence, so no more pending nodes have inputs at a time.
  // The answer may be a needless no in two cases. First, if two sequences share their last page and
  // there is one page less than both need. Second, for a sequence with recurrent layers after a
  // rewind: its state is in a snapshot's page, which counts as one to copy, although ensure_slots()
  // may release the snapshot.
  static bool fit(KvCache& cache, std::span<const SequenceGrowth> growths);
  // Adds a pending node in the next slot. parent: -1 or a pending node's index. Call ensure_slots()
  // first.
  void append(int parent) { tree_.append(parent); }

  // As in TokenTree.
  int parent(int node) const { return tree_.parent(node); }
  int depth(int node) const { return tree_.depth(node); }
  int n_contiguous(int node) const { return tree_.n_contiguous(node); }
  void scattered_slots(int node, std::span<int> slots) const { tree_.scattered_slots(node, slots); }

  // The layout of a layer in one page of its group.
  const KvShape& shape(int layer) const { return cache_->shape(layer); }
  // The keys and values of one layer in the page of a slot; the slot's place there is slot %
  // kPageTokens. The page must not have been released.
  std::byte* layer(int slot, int layer) const {
    const KvCache::LayerPlace& place = cache_->place(layer);
    const PageTable& table = tables_[static_cast<std::size_t>(place.group)];
    return cache_->store().bytes(table.page_of(slot)) + place.at_bytes;
  }
  // The same for its first chunks.size() pages (at most n_pages(layer)); null for pages that a
  // window has released.
  void chunks(int layer, std::span<const void*> chunks) const;
  std::size_t n_pages(int layer) const { return table_of(layer).n_pages(); }
  PageId page(int layer, std::size_t index) const { return table_of(layer).page(index); }
  // Whether the pages of its last n_tokens kept tokens are present (of all tokens, if there are
  // fewer): rewind() may leave a few less than a window.
  bool holds_last(int n_tokens, int layer) const {
    return table_of(layer).first_slot() <= std::max(n_kept() - n_tokens, 0);
  }

  // In a recurrent layer: the inputs of a pending node (input_width), and the state at the last
  // kept token (state_width).
  float* inputs(int node, int layer) const { return recurrent_->inputs(node, layer); }
  const float* state(int layer) const { return recurrent_->state(layer); }

 private:
  const PageTable& table_of(int layer) const {
    return tables_[static_cast<std::size_t>(cache_->place(layer).group)];
  }
  // Whether tokens of this sequence are in pages of that table.
  bool fills(const PageTable& table) const {
    const CacheSide side = cache_->groups()[static_cast<std::size_t>(table.group())].side;
    return (side == CacheSide::text) == (role_ == Role::text);
  }
  void drop_unread_pages();
  // own() of the cache's ranges; if memory is used up, drops these sequences' snapshots first.
  static void own(KvCache& cache, std::span<const Reservation> sequences, const char* operation);
  int n_slots_in(std::size_t page) const {
    return std::min(n_kept() - static_cast<int>(page) * kPageTokens, kPageTokens);
  }

  std::shared_ptr<KvCache> cache_;  // outlives the tables
  TokenTree tree_;
  std::vector<PageTable> tables_;  // one for each group that has keys: the first groups
  std::optional<RecurrentPart> recurrent_;
  std::vector<int> skipped_layers_;
  int prompt_length_ = 0;
  Role role_;
  std::shared_ptr<KvSequence> encoder_;
  std::vector<TokenId> input_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_KV_SEQUENCE_H_
