// SPDX-License-Identifier: Apache-2.0
// The groups of a model's layers in the KV cache: what one layer keeps for each token, and which
// layers share pages.
//
// Layers that keep the same form a group. A page belongs to one group and holds kPageTokens
// consecutive slots of one sequence, for all layers of the group. So pages that one kind of layer
// no longer reads can be released while another kind still reads its own.
//
// Recurrent layers keep no keys and values. Each of them keeps a state at one token and, for every
// pending node, the small inputs of its update. They have two groups of pages: one of states, with
// a page for each token whose state is kept, and one of inputs, with a page for several pending
// nodes.
//
// Everything here is a plain value and can be read from any thread.
#ifndef OUTRIDER_MODEL_CACHE_CACHE_GROUP_H_
#define OUTRIDER_MODEL_CACHE_CACHE_GROUP_H_

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/table.h"
#include "model/cache/delta_shape.h"

namespace outrider {

// Tokens in one page: those that a kernel processes in one step (kernels/attention/kv_layout.h), so
// that it reads blocks with one stride and a context has few pages. The cost is half a page of
// empty slots for each sequence and one copied page for each fork. With 1.1 billion parameters in
// bf16, half a page is 0.7 MB, less than a thousandth of the weights.
inline constexpr int kPageTokens = kernels::kChunkKeys;

// "f32", "bf16", "int8".
const char* name_of(kernels::KvKind kind);

// How a state advances from token to token (recurrence.h has the arithmetic). Another kind of
// recurrent layer is another entry here.
enum class Recurrence { none, convolution, delta, mamba };

// What one recurrent layer keeps, in f32 values: the width of a state, and of the inputs that
// advance it by one token. convolution: the inputs of the last tokens, oldest first; so state_width
// is a multiple of input_width. delta and mamba: the layout of DeltaShape.
struct RecurrentShape {
  Recurrence recurrence = Recurrence::none;
  int state_width = 0;
  int input_width = 0;
  DeltaShape delta = {};

  bool operator==(const RecurrentShape&) const = default;
};

// Whose tokens a layer keeps. In an encoder-decoder, the encoder's input has a separate sequence.
// It holds the encoder layers' keys and values (dropped after the encoder has run), and those that
// decoder layers read of the encoder's output.
enum class CacheSide { text, encoder, cross };

// What one layer keeps, as declared by the model: keys and values of n_heads heads of head_dim
// elements, or the state of a recurrent layer.
struct LayerCache {
  int n_heads = 0;  // of keys and values
  int head_dim = 0;
  int window = 0;  // a query reads its own position and the window - 1 before it; 0: all
  RecurrentShape recurrent = {};
  // If > 0, the first values_in_keys elements of a key are its value (AttendArgs), which is not
  // stored again.
  int values_in_keys = 0;
  CacheSide side = CacheSide::text;

  bool is_recurrent() const { return recurrent.recurrence != Recurrence::none; }
  bool operator==(const LayerCache&) const = default;
};

// Layout of the keys and values of one layer in one page: (2, n_heads) blocks
// (kernels/attention/kv_layout.h), all keys first, then all values; if keys hold their values,
// (n_heads). Offsets in bytes from the start of the layer.
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

// What the layers of a group keep. full: keys and values of all positions. window: of the last ones
// alone. state: states of recurrent layers. inputs: those of their pending nodes.
enum class CacheKind { full, window, state, inputs };

constexpr bool has_keys(CacheKind kind) {
  return kind == CacheKind::full || kind == CacheKind::window;
}

// Pending nodes whose inputs share a page. A plain decoded token and most drafts take one page, a
// part of a prompt takes 32. At most seven nodes' inputs are wasted: with a convolution over three
// tokens, less than four states.
inline constexpr int kInputNodes = 8;

struct CacheGroup {
  CacheKind kind = CacheKind::full;
  std::vector<int> layers;   // of the model, ascending
  KvShape shape;             // of each layer that has keys
  int window = 0;            // positions; 0 unless kind is window
  RecurrentShape recurrent;  // of each recurrent layer
  CacheSide side = CacheSide::text;

  // Tokens in a page; for inputs, pending nodes.
  int page_slots() const {
    return has_keys(kind) ? kPageTokens : kind == CacheKind::inputs ? kInputNodes : 1;
  }
  // Bytes of one layer's part of a page: inputs (kInputNodes, input_width) f32, states
  // (state_width) f32. Whole cache lines, at least one.
  std::size_t layer_bytes() const;
  // Layers are contiguous in a page.
  std::size_t page_bytes() const { return layers.size() * layer_bytes(); }
};

// Groups of layers with keys, in the order of their first layers; then, if layers are recurrent,
// the group of states and the group of inputs. Throws Error if there is no layer, or a layer has no
// heads, no elements, a negative window or values wider than its keys. Throws also if a recurrent
// layer has heads, no state, no inputs, or another shape than the first.
std::vector<CacheGroup> make_cache_groups(std::span<const LayerCache> layers, kernels::KvKind kind);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_CACHE_GROUP_H_
