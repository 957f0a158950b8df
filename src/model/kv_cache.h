// Keys and values of many sequences, in pages.
//
// A page holds the keys and values of kPageTokens consecutive slots of one sequence, for all
// layers. Slot i of a sequence is its kept token i, or, from n_kept() on, its pending nodes in the
// order in which they came. Pages are shared between forks; whoever writes to a shared page takes
// a copy of it first.
//
// Invariants: a page is on the free list exactly when nobody uses it; every page from which a
// sequence will read or write slots is among its pages; pages holding pending nodes may be shared
// only as far as their kept slots are read. Nothing here is thread-safe, except that slots may be
// read and (different ones) written from many threads while no page changes hands.
#ifndef OUTRIDER_MODEL_KV_CACHE_H_
#define OUTRIDER_MODEL_KV_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/big_memory.h"
#include "kernels/table.h"
#include "model/language_model.h"

namespace outrider {

// Tokens in one page: those that a kernel goes over in one step (kernels/kv_layout.h), so that it
// reads blocks with one stride and the list of a context's pages is short. What that costs is half
// a page of empty slots per sequence (of 1.1 billion parameters in bf16 0.7 MB, less than a
// thousandth of their weights) and one copied page per fork.
inline constexpr int kPageTokens = kernels::kChunkKeys;

struct KvShape {
  int n_layers = 0;
  int n_heads = 0;   // of keys and values
  int head_dim = 0;  // elements of one token's keys in one layer: n_heads * head_dim
  kernels::KvKind kind = kernels::KvKind::f32;

  // A page is (n_layers, 2, n_heads) blocks (kernels/kv_layout.h): all keys of a layer, then all
  // its values. From the beginning of a layer, in bytes:
  std::size_t keys_at(int head) const;
  std::size_t values_at(int head) const { return keys_at(n_heads + head); }
  std::size_t layer_bytes() const { return keys_at(2 * n_heads); }
  std::size_t page_bytes() const { return layer_bytes() * static_cast<std::size_t>(n_layers); }
  std::size_t block_bytes() const { return keys_at(1); }
  // Keys and values of one token in all layers, with what blocks are padded with.
  std::size_t token_bytes() const { return page_bytes() / kPageTokens; }
};

// "f32", "bf16", "int8".
const char* name_of(kernels::KvKind kind);

using PageId = std::int32_t;

// All pages of a model. Pages that nobody uses any more are handed out again before new memory is
// asked for: as many pages again as there are, so that long contexts lie in huge pages
// (base/big_memory.h) and short ones take little.
class PagePool {
 public:
  explicit PagePool(const KvShape& shape);
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  const KvShape& shape() const { return shape_; }
  PageId acquire();  // with one user; contents undefined. May throw std::bad_alloc.
  void share(PageId page) { ++n_users_[static_cast<std::size_t>(page)]; }
  void release(PageId page);
  bool is_shared(PageId page) const { return n_users_[static_cast<std::size_t>(page)] > 1; }
  std::byte* bytes(PageId page) const { return pages_[static_cast<std::size_t>(page)]; }

  int n_pages() const { return static_cast<int>(pages_.size()); }
  int n_free() const { return static_cast<int>(free_.size()); }

 private:
  void extend();

  KvShape shape_;
  std::size_t stride_;             // bytes from one page to the next, whole cache lines
  std::vector<BigMemory> memory_;  // each of some pages
  std::byte* unused_ = nullptr;    // in the last, pages that nobody has asked for yet
  std::size_t n_unused_ = 0;
  std::vector<std::byte*> pages_;
  std::vector<int> n_users_;  // (n_pages)
  std::vector<PageId> free_;  // capacity for all pages: release() never allocates
};

// One sequence: its pages, and the tree of its pending nodes. The pool lives as long as the last
// sequence.
class KvSequence final : public Sequence {
 public:
  explicit KvSequence(std::shared_ptr<PagePool> pool) : pool_(std::move(pool)) {}
  ~KvSequence() override;

  int n_kept() const override { return n_kept_; }
  int n_pending() const override { return static_cast<int>(parents_.size()); }
  void keep(std::span<const int> path) override;
  void truncate(int n_tokens) override;
  std::unique_ptr<Sequence> fork() const override;

  const PagePool* pool() const { return pool_.get(); }
  std::size_t n_pages() const { return pages_.size(); }

  bool empty() const { return n_kept_ == 0 && parents_.empty(); }
  // The layers that its tokens were run without (ForwardRequest): they have no keys and values
  // there, and those of later layers are not the whole model's. Set while it is empty, or of a fork
  // for passes that leave out the last layers: it has keys and values there that nobody reads.
  std::span<const int> skipped_layers() const { return skipped_layers_; }
  void set_skipped_layers(std::span<const int> layers) {
    skipped_layers_.assign(layers.begin(), layers.end());
  }

  // Takes pages for n_slots slots now, and gives none of them back before it ends: within them it
  // asks the pool for nothing, but in place of pages that forks share. On an empty sequence. May
  // throw std::bad_alloc.
  void hold(int n_slots);
  // Makes sure that n_new further slots have pages of this sequence's own and that append() will
  // not allocate. Changes nothing that can be seen; may throw std::bad_alloc.
  void reserve(int n_new);
  // A pending node in the next slot. parent: -1 or a pending node's index. After reserve().
  void append(int parent);

  int parent(int node) const { return parents_[static_cast<std::size_t>(node)]; }
  int depth(int node) const { return depths_[static_cast<std::size_t>(node)]; }

  // Where the keys and values stand, in one layer, of the page that a slot lies in; the slot's
  // place there is slot % kPageTokens.
  std::byte* layer(int slot, int layer) const {
    return pool_->bytes(pages_[static_cast<std::size_t>(slot / kPageTokens)]) +
           static_cast<std::size_t>(layer) * pool_->shape().layer_bytes();
  }
  // The same of its first pages, as many as chunks has entries; n_pages() at most.
  void chunks(int layer, std::span<const void*> chunks) const;

  // What a pending node attends to: the kept tokens, its ancestors and itself, n_kept() + depth + 1
  // positions. Of these the first so many are slots of that number ...
  int n_in_place(int node) const;
  // ... and the others stand in these: in order of position, one each.
  void others(int node, std::span<int> slots) const;

 private:
  void own_pages(int first_slot, int end_slot);
  void copy_first_slots(const std::byte* from, std::byte* to, int n) const;
  void move_slot(int from, int to);
  void drop_pages_beyond(int n_slots);

  std::shared_ptr<PagePool> pool_;
  std::vector<PageId> pages_;
  std::size_t n_held_ = 0;  // pages that stay, whatever is dropped
  int n_kept_ = 0;
  std::vector<int> skipped_layers_;
  std::vector<int> parents_;  // (n_pending)
  std::vector<int> depths_;   // (n_pending); a child of the last kept token has depth 0
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_KV_CACHE_H_
