// How a model's layers keep their state from token to token: what one layer keeps, and which layers
// share pages.
//
// Layers that keep the same form a group. A page belongs to one group and holds kPageTokens
// consecutive slots of one sequence, for all layers of the group. So pages that one kind of layer
// no longer reads can be given up while another kind still reads its own.
//
// Recurrent layers keep no keys and values. What each of them keeps is a state at one token, and
// for every pending node the small inputs of its update. They have two groups of pages: of states,
// a page for each token whose state is there, and of inputs, a page for several pending nodes.
//
// Everything here is a plain value: safe to read from any thread.
#ifndef OUTRIDER_MODEL_CACHE_CACHE_GROUP_H_
#define OUTRIDER_MODEL_CACHE_CACHE_GROUP_H_

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/table.h"
#include "model/cache/delta_shape.h"

namespace outrider {

// Tokens in one page: those that a kernel goes over in one step (kernels/kv_layout.h), so that it
// reads blocks with one stride and the list of a context's pages is short. What that costs is half
// a page of empty slots per sequence (of 1.1 billion parameters in bf16 0.7 MB, less than a
// thousandth of their weights) and one copied page per fork.
inline constexpr int kPageTokens = kernels::kChunkKeys;

// "f32", "bf16", "int8".
const char* name_of(kernels::KvKind kind);

// How a state goes on from token to token (recurrence.h has the arithmetic). Another kind of
// recurrent layer is another entry here.
enum class Recurrence { none, convolution, delta, mamba };

// What one recurrent layer keeps: floats (f32) of a state, and of the inputs that take it on by one
// token. convolution: the inputs of the last tokens, oldest first; so state_width is a multiple of
// input_width. delta and mamba: as DeltaShape lays them out.
struct RecurrentShape {
  Recurrence recurrence = Recurrence::none;
  int state_width = 0;
  int input_width = 0;
  DeltaShape delta = {};

  bool operator==(const RecurrentShape&) const = default;
};

// Whose tokens a layer keeps. In an encoder-decoder, those that the encoder reads stand in a
// sequence of their own: its layers' keys and values, which go when it has run, and those that
// layers of the decoder read of what it made.
enum class CacheSide { text, encoder, cross };

// What one layer keeps, as a model says it: keys and values of n_heads heads of head_dim elements,
// or what a recurrent layer does.
struct LayerCache {
  int n_heads = 0;  // of keys and values
  int head_dim = 0;
  int window = 0;  // a query reads its own position and the window - 1 before it; 0: all of them
  RecurrentShape recurrent = {};
  // Above 0: a key's first so many elements are its value (AttendArgs), which is not kept again.
  int values_in_keys = 0;
  CacheSide side = CacheSide::text;

  bool is_recurrent() const { return recurrent.recurrence != Recurrence::none; }
  bool operator==(const LayerCache&) const = default;
};

// The keys and values of one layer in one page: (2, n_heads) blocks (kernels/kv_layout.h), all keys
// first, then all values; of keys that hold their values (n_heads). Offsets in bytes, from where
// the layer begins.
struct KvShape {
  int n_heads = 0;
  int head_dim = 0;
  kernels::KvKind kind = kernels::KvKind::f32;
  int values_in_keys = 0;  // LayerCache

  bool has_values() const { return values_in_keys == 0; }
  int value_dim() const { return has_values() ? head_dim : values_in_keys; }
  std::size_t keys_at(int head) const;
  std::size_t values_at(int head) const { return keys_at(n_heads + head); }
  std::size_t layer_bytes() const { return keys_at(has_values() ? 2 * n_heads : n_heads); }
  std::size_t block_bytes() const { return keys_at(1); }
  bool operator==(const KvShape&) const = default;
};

// What the layers of a group keep. Full: keys and values of all positions. Window: of the last ones
// alone. State: recurrent layers' states. Inputs: those of their pending nodes.
enum class CacheKind { full, window, state, inputs };

constexpr bool has_keys(CacheKind kind) {
  return kind == CacheKind::full || kind == CacheKind::window;
}

// Pending nodes whose inputs share a page. A plain decoded token and most drafts take one page, a
// prompt's part 32. What that costs is seven nodes' inputs at the most: of a convolution over three
// tokens less than four states.
inline constexpr int kInputNodes = 8;

struct CacheGroup {
  CacheKind kind = CacheKind::full;
  std::vector<int> layers;   // of the model, ascending
  KvShape shape;             // of each layer that has keys
  int window = 0;            // positions; 0 unless kind is window
  RecurrentShape recurrent;  // of each recurrent layer
  CacheSide side = CacheSide::text;

  // Tokens (of inputs: pending nodes) in a page.
  int page_slots() const {
    return has_keys(kind) ? kPageTokens : kind == CacheKind::inputs ? kInputNodes : 1;
  }
  // One layer's part of a page: of inputs (kInputNodes, input_width) f32, of states (state_width).
  // Whole cache lines, at least one.
  std::size_t layer_bytes() const;
  // In a page the layers stand one behind the other.
  std::size_t page_bytes() const { return layers.size() * layer_bytes(); }
};

// Groups of layers with keys, in the order of their first layers; behind them, where layers are
// recurrent, that of their states and that of their inputs. Throws Error where there is no layer;
// where one has no heads, no elements, a negative window or values wider than its keys; where a
// recurrent one has heads, no state, no inputs, or another shape than the first.
std::vector<CacheGroup> make_cache_groups(std::span<const LayerCache> layers, kernels::KvKind kind);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_CACHE_GROUP_H_
