// One sequence of a model: the tree of its tokens, a table of pages for each group of layers that
// have keys, and what recurrent layers keep (recurrent_part.h).
//
// Slots are numbered as TokenTree says. Pages are shared between forks; whoever writes to a shared
// page takes a copy of it first. Pages are taken when slots are reserved, and given up when no
// token stands in them, or when a window has left them behind.
//
// In an encoder-decoder a text's sequence points to that of what its encoder reads; each has empty
// tables for the other's groups.
//
// Invariants: every page from which the sequence will read or write slots is in its tables; pages
// holding pending nodes may be shared only as far as their kept slots are read; all tables that are
// not empty have the same number of pages, those that are gone among them. Nothing here is
// thread-safe, except that slots may be read and (different ones) written from many threads while
// no page changes hands.
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

// Positions behind a window whose pages stay: a sequence may be rewound by so many tokens, as a
// drafter's is behind a rejected draft, and still stand there. Drafts longer than a page are rare,
// and rewinding further costs time alone: the window is read anew.
inline constexpr int kRewindTokens = kPageTokens;

class KvSequence final : public Sequence {
 public:
  // Of an encoder-decoder, what the encoder reads is a sequence of its own.
  enum class Role { text, encoder };
  explicit KvSequence(std::shared_ptr<KvCache> cache, Role role = Role::text);

  int n_kept() const override { return tree_.n_kept(); }
  int n_pending() const override { return tree_.n_pending(); }
  void keep(std::span<const int> path) override;
  // Where every window still holds what a query behind n_tokens reads, n_tokens; else 0. With
  // recurrent layers: as many of these as a state is there for (StateSnapshots).
  int rewind(int n_tokens) override;
  std::unique_ptr<Sequence> fork() const override;

  // The kept tokens' keys, values and states as bytes, in pieces: what is undefined in memory is 0
  // there, so that equal sequences have equal bytes. Throws Error where a node is pending or layers
  // were skipped or read what an encoder made, and what `write` throws.
  void save(const ByteSink& write) const;
  // Of a sequence that is empty: `read` fills each piece. Throws Error where these cannot be a
  // sequence of so many tokens of this cache, or where its memory is used up, and what `read`
  // throws; the sequence is of no use then.
  void load(int n_tokens, const ByteSource& read);

  const KvCache* cache() const { return cache_.get(); }
  bool empty() const { return tree_.n_slots() == 0; }

  // The layers that its tokens were run without (ForwardRequest): they have no keys and values
  // there, and those of later layers are not the whole model's. Set while it is empty, or of a fork
  // for passes that leave out the last layers: it has keys and values there that nobody reads.
  std::span<const int> skipped_layers() const { return skipped_layers_; }
  void set_skipped_layers(std::span<const int> layers) {
    skipped_layers_.assign(layers.begin(), layers.end());
  }

  // Gives up the states that rewind() goes back to, as far as they take memory: then it goes to 0.
  void drop_snapshots() {
    if (recurrent_) recurrent_->drop_snapshots();
  }

  // Tokens of the text that it began with (Prompt).
  int prompt_length() const { return prompt_length_; }
  void set_prompt_length(int n_tokens) { prompt_length_ = n_tokens; }

  // An encoder's sequence that is to read these tokens.
  static std::shared_ptr<KvSequence> open_encoder(std::shared_ptr<KvCache> cache,
                                                  std::span<const TokenId> tokens);
  // Of a new text of an encoder-decoder, before its first token is run.
  void set_encoder(std::shared_ptr<KvSequence> encoder) { encoder_ = std::move(encoder); }
  // The encoder's sequence, empty until the encoder has run; null of decoders. Forks share it, and
  // so may other texts: it does not change once it has run.
  KvSequence* encoder() const { return encoder_.get(); }
  // Of an encoder's sequence: what it reads. It has run once that is kept.
  std::span<const TokenId> input() const { return input_; }
  // All of it is pending: it is kept, and the encoder's own keys and values are given up.
  void finish_encoder();

  // Its lists have room for so many slots: a hint, which takes no page. May throw std::bad_alloc.
  void expect(int n_slots);
  // Makes sure that n_new further slots have pages of this sequence's own and that append() will
  // not allocate. Changes nothing that can be seen. Throws Error where the cache's memory is used
  // up, or std::bad_alloc; nothing has changed then.
  void reserve(int n_new);
  // The same for several sequences of one cache, each of which is there once: for all or for none.
  struct Reservation {
    KvSequence* sequence;
    int n_new;
  };
  static void reserve(std::span<const Reservation> reservations);
  // Whether reserve() would find the memory for these, all of them of the cache, in passes of
  // kPrefillRows rows of one sequence at most: of pending nodes no more have inputs at a time. May
  // say no where two of them share the page that they go on in, and there is one page less than
  // both need; and for a sequence with recurrent layers behind a rewinding: its state stands in the
  // page of a snapshot, which counts as one to copy, though reserve() may give the snapshot up.
  static bool fit(KvCache& cache, std::span<const SequenceGrowth> growths);
  // A pending node in the next slot. parent: -1 or a pending node's index. After reserve().
  void append(int parent) { tree_.append(parent); }

  // As TokenTree has them.
  int parent(int node) const { return tree_.parent(node); }
  int depth(int node) const { return tree_.depth(node); }
  int n_in_place(int node) const { return tree_.n_in_place(node); }
  void others(int node, std::span<int> slots) const { tree_.others(node, slots); }

  // What a layer keeps, for one page of its group.
  const KvShape& shape(int layer) const { return cache_->shape(layer); }
  // Where the keys and values stand, in one layer, of the page that a slot lies in; the slot's
  // place there is slot % kPageTokens. The page is there.
  std::byte* layer(int slot, int layer) const {
    const KvCache::LayerPlace& place = cache_->place(layer);
    const PageTable& table = tables_[static_cast<std::size_t>(place.group)];
    return cache_->store().bytes(table.page_of(slot)) + place.at_bytes;
  }
  // The same of its first pages, as many as chunks has entries (n_pages(layer) at most); null for
  // pages that a window has left behind.
  void chunks(int layer, std::span<const void*> chunks) const;
  std::size_t n_pages(int layer) const { return table_of(layer).n_pages(); }
  PageId page(int layer, std::size_t index) const { return table_of(layer).page(index); }
  // Whether its last n_tokens kept tokens, or all where there are fewer, have their pages there:
  // rewind() may leave a few less than a window.
  bool holds_last(int n_tokens, int layer) const {
    return table_of(layer).first_slot() <= std::max(n_kept() - n_tokens, 0);
  }

  // In a recurrent layer, the inputs of a pending node (input_width) and the state at the last kept
  // token (state_width).
  float* inputs(int node, int layer) const { return recurrent_->inputs(node, layer); }
  const float* state(int layer) const { return recurrent_->state(layer); }

 private:
  const PageTable& table_of(int layer) const {
    return tables_[static_cast<std::size_t>(cache_->place(layer).group)];
  }
  // Whether tokens of this sequence stand in pages of that table.
  bool fills(const PageTable& table) const {
    const CacheSide side = cache_->groups()[static_cast<std::size_t>(table.group())].side;
    return (side == CacheSide::text) == (role_ == Role::text);
  }
  void drop_unread_pages();
  // own() of the cache's ranges; where memory is used up, without these sequences' snapshots.
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
