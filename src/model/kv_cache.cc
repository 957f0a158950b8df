#include "model/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/kv_layout.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// The most that is asked for at once: several huge pages, of which no more than the last one stands
// half empty.
constexpr std::size_t kMostAtOnce_bytes = std::size_t{16} << 20;

// Room for n entries, growing in powers of two as push_back would.
template <typename Vector>
void make_room(Vector& vector, std::size_t n) {
  if (vector.capacity() < n) vector.reserve(std::max(n, 2 * vector.capacity()));
}

}  // namespace

const char* name_of(kernels::KvKind kind) {
  constexpr const char* kNames[] = {"f32", "bf16", "int8"};
  return kNames[static_cast<int>(kind)];
}

std::size_t KvShape::keys_at(int head) const {
  return static_cast<std::size_t>(head) * kernels::KvLayout{kind, head_dim}.block_bytes();
}

PagePool::PagePool(const KvShape& shape)
    : shape_(shape), stride_(std::max<std::size_t>(shape.page_bytes(), 1)) {}

void PagePool::extend() {
  const std::size_t most = std::max<std::size_t>(kMostAtOnce_bytes / stride_, 1);
  const std::size_t n = std::clamp<std::size_t>(pages_.size(), 1, most);
  make_room(memory_, memory_.size() + 1);
  memory_.push_back(allocate_big_memory(n * stride_));
  unused_ = memory_.back().get();
  n_unused_ = n;
}

PageId PagePool::acquire() {
  if (free_.empty()) {
    make_room(free_, pages_.size() + 1);
    make_room(n_users_, pages_.size() + 1);
    make_room(pages_, pages_.size() + 1);
    if (n_unused_ == 0) extend();
    pages_.push_back(unused_);
    unused_ += stride_;
    --n_unused_;
    n_users_.push_back(1);
    return static_cast<PageId>(pages_.size()) - 1;
  }
  const PageId page = free_.back();
  free_.pop_back();
  n_users_[static_cast<std::size_t>(page)] = 1;
  return page;
}

void PagePool::release(PageId page) {
  if (--n_users_[static_cast<std::size_t>(page)] == 0) free_.push_back(page);
}

KvSequence::~KvSequence() {
  for (const PageId page : pages_) pool_->release(page);
}

void KvSequence::hold(int n_slots) {
  own_pages(0, n_slots);
  n_held_ = pages_.size();
}

void KvSequence::reserve(int n_new) {
  const auto n_nodes = parents_.size() + static_cast<std::size_t>(n_new);
  make_room(parents_, n_nodes);
  make_room(depths_, n_nodes);
  const int n_slots = n_kept_ + n_pending();
  own_pages(n_slots, n_slots + n_new);
}

void KvSequence::append(int parent) {
  parents_.push_back(parent);
  depths_.push_back(parent < 0 ? 0 : depth(parent) + 1);
}

void KvSequence::chunks(int layer, std::span<const void*> chunks) const {
  const std::size_t offset = static_cast<std::size_t>(layer) * pool_->shape().layer_bytes();
  for (std::size_t i = 0; i < chunks.size(); ++i) chunks[i] = pool_->bytes(pages_[i]) + offset;
}

int KvSequence::n_in_place(int node) const {
  // A node is never less than its depth, and where it is its depth, so are its ancestors.
  while (node >= 0 && node != depth(node)) node = parent(node);
  return n_kept_ + node + 1;
}

void KvSequence::others(int node, std::span<int> slots) const {
  // The path lies backwards: from the node to its ancestors.
  for (std::size_t i = slots.size(); i > 0; --i, node = parent(node)) slots[i - 1] = n_kept_ + node;
}

void KvSequence::keep(std::span<const int> path) {
  int last = -1;
  for (const int node : path) {
    if (node < 0 || node >= n_pending()) {
      throw Error("keep", "path", fmt::format("pending nodes, 0 to {}", n_pending() - 1),
                  fmt::format("{}", node));
    }
    if (parent(node) != last) {
      throw Error("keep", "path", fmt::format("a child of {}", last),
                  fmt::format("{}, whose parent is {}", node, parent(node)));
    }
    last = node;
  }
  const auto n_new = static_cast<int>(path.size());
  // A node never stands before its place in the path, so that moving in order overwrites none that
  // is still to move. Where the path is the first nodes in order, nothing moves.
  int first_moved = 0;
  while (first_moved < n_new && path[static_cast<std::size_t>(first_moved)] == first_moved) {
    ++first_moved;
  }
  if (first_moved < n_new) own_pages(n_kept_ + first_moved, n_kept_ + n_new);
  for (int i = first_moved; i < n_new; ++i) {
    move_slot(n_kept_ + path[static_cast<std::size_t>(i)], n_kept_ + i);
  }
  n_kept_ += n_new;
  parents_.clear();
  depths_.clear();
  drop_pages_beyond(n_kept_);
}

void KvSequence::truncate(int n_tokens) {
  if (n_tokens < 0 || n_tokens > n_kept_) {
    throw Error("truncate", "sequence", fmt::format("0 to {} tokens", n_kept_),
                fmt::format("{}", n_tokens));
  }
  n_kept_ = n_tokens;
  parents_.clear();
  depths_.clear();
  drop_pages_beyond(n_kept_);
}

std::unique_ptr<Sequence> KvSequence::fork() const {
  auto copy = std::make_unique<KvSequence>(pool_);
  const auto n_pages = static_cast<std::size_t>((n_kept_ + kPageTokens - 1) / kPageTokens);
  copy->pages_.assign(pages_.begin(), pages_.begin() + static_cast<std::ptrdiff_t>(n_pages));
  for (const PageId page : copy->pages_) pool_->share(page);
  copy->n_kept_ = n_kept_;
  copy->skipped_layers_ = skipped_layers_;
  return copy;
}

// Gives the sequence pages of its own for the slots from first_slot up to, not including, end_slot:
// new ones at the end, copies in place of shared ones.
void KvSequence::own_pages(int first_slot, int end_slot) {
  const auto n_pages = static_cast<std::size_t>((end_slot + kPageTokens - 1) / kPageTokens);
  make_room(pages_, n_pages);
  for (auto page = static_cast<std::size_t>(first_slot / kPageTokens); page < n_pages; ++page) {
    if (page >= pages_.size()) {
      pages_.push_back(pool_->acquire());
    } else if (pool_->is_shared(pages_[page])) {
      const PageId own = pool_->acquire();
      const int first = static_cast<int>(page) * kPageTokens;
      const int n_used = std::clamp(n_kept_ + n_pending() - first, 0, kPageTokens);
      copy_first_slots(pool_->bytes(pages_[page]), pool_->bytes(own), n_used);
      pool_->release(pages_[page]);
      pages_[page] = own;
    }
  }
}

void KvSequence::copy_first_slots(const std::byte* from, std::byte* to, int n) const {
  const KvShape& shape = pool_->shape();
  const kernels::KvLayout layout{shape.kind, shape.head_dim};
  for (int l = 0; l < shape.n_layers; ++l, from += shape.layer_bytes(), to += shape.layer_bytes()) {
    for (int head = 0; head < shape.n_heads; ++head) {
      layout.copy_first_keys(from + shape.keys_at(head), to + shape.keys_at(head), n);
      layout.copy_first_values(from + shape.values_at(head), to + shape.values_at(head), n);
    }
  }
}

void KvSequence::move_slot(int from, int to) {
  const KvShape& shape = pool_->shape();
  const kernels::KvLayout layout{shape.kind, shape.head_dim};
  for (int l = 0; l < shape.n_layers; ++l) {
    const std::byte* source = layer(from, l);
    std::byte* target = layer(to, l);
    for (int head = 0; head < shape.n_heads; ++head) {
      layout.copy_key(source + shape.keys_at(head), from % kPageTokens,
                      target + shape.keys_at(head), to % kPageTokens);
      layout.copy_value(source + shape.values_at(head), from % kPageTokens,
                        target + shape.values_at(head), to % kPageTokens);
    }
  }
}

void KvSequence::drop_pages_beyond(int n_slots) {
  const auto n_pages = static_cast<std::size_t>((n_slots + kPageTokens - 1) / kPageTokens);
  while (pages_.size() > std::max(n_pages, n_held_)) {
    pool_->release(pages_.back());
    pages_.pop_back();
  }
}

}  // namespace outrider
