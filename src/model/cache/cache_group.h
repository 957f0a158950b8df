// How a model's layers keep their state from token to token: what one layer keeps, and which layers
// share pages.
//
// Layers that keep the same form a group. A page belongs to one group and holds kPageTokens
// consecutive slots of one sequence, for all layers of the group. So pages that one kind of layer
// no longer reads can be given up while another kind still reads its own.
//
// Everything here is a plain value: safe to read from any thread.
#ifndef OUTRIDER_MODEL_CACHE_CACHE_GROUP_H_
#define OUTRIDER_MODEL_CACHE_CACHE_GROUP_H_

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/table.h"

namespace outrider {

// Tokens in one page: those that a kernel goes over in one step (kernels/kv_layout.h), so that it
// reads blocks with one stride and the list of a context's pages is short. What that costs is half
// a page of empty slots per sequence (of 1.1 billion parameters in bf16 0.7 MB, less than a
// thousandth of their weights) and one copied page per fork.
inline constexpr int kPageTokens = kernels::kChunkKeys;

// "f32", "bf16", "int8".
const char* name_of(kernels::KvKind kind);

// What one layer keeps, as a model says it: keys and values of n_heads heads of head_dim elements.
struct LayerCache {
  int n_heads = 0;  // of keys and values
  int head_dim = 0;
  int window = 0;  // a query reads its own position and the window - 1 before it; 0: all of them

  bool operator==(const LayerCache&) const = default;
};

// The keys and values of one layer in one page: (2, n_heads) blocks (kernels/kv_layout.h), all keys
// first, then all values. Offsets in bytes, from where the layer begins.
struct KvShape {
  int n_heads = 0;
  int head_dim = 0;
  kernels::KvKind kind = kernels::KvKind::f32;

  std::size_t keys_at(int head) const;
  std::size_t values_at(int head) const { return keys_at(n_heads + head); }
  std::size_t layer_bytes() const { return keys_at(2 * n_heads); }
  std::size_t block_bytes() const { return keys_at(1); }
};

// What the layers of a group keep. Full: keys and values of all positions. Window: of the last ones
// alone.
enum class CacheKind { full, window };

struct CacheGroup {
  CacheKind kind = CacheKind::full;
  std::vector<int> layers;  // of the model, ascending
  KvShape shape;            // of each layer
  int window = 0;           // positions; 0 unless kind is window

  // In a page the layers stand one behind the other. Whole cache lines, at least one.
  std::size_t page_bytes() const;
};

// Groups in the order of their first layers. Throws Error where there is no layer, and where one
// has no heads, no elements or a negative window.
std::vector<CacheGroup> make_cache_groups(std::span<const LayerCache> layers, kernels::KvKind kind);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_CACHE_GROUP_H_
