// SPDX-License-Identifier: Apache-2.0
// Layout of the state and inputs of a layer with a gated delta rule or of Mamba-2. For Mamba-2, key
// heads are groups, queries are C, keys B, values x, and beta is the step length.
//
// The state of a token: first the convolution's inputs of the tokens up to it, (n_taps - 1,
// convolved_width()), oldest token first; then for each value head the matrix S, (key_dim,
// value_dim). Channels are the queries of all key heads, their keys, and the values of all value
// heads.
//
// The inputs of a pending node: those of the convolution, (convolved_width()); then the operands of
// the update of S. These are keys (n_key_heads, key_dim), convolved and (delta rule) normalised;
// values (n_value_heads, value_dim), convolved; beta of each value head; and the decay of each
// value head.
//
// A plain value.
#ifndef OUTRIDER_MODEL_CACHE_DELTA_SHAPE_H_
#define OUTRIDER_MODEL_CACHE_DELTA_SHAPE_H_

namespace outrider {

struct DeltaShape {
  int n_taps = 0;  // tokens that the convolution reads, including the node; at least 2
  int n_key_heads = 0;
  int n_value_heads = 0;  // a multiple of n_key_heads
  int key_dim = 0;        // of a head
  int value_dim = 0;      // of a head
  // The key head of value head j: j mod n_key_heads, as in GGUF files of Qwen3.5; otherwise
  // neighbouring value heads share one.
  bool is_tiled = false;

  int group() const { return n_value_heads / n_key_heads; }  // value heads of one key head
  // The i-th value head of a key head.
  int value_head(int key_head, int i) const {
    return is_tiled ? i * n_key_heads + key_head : key_head * group() + i;
  }

  int key_head_of(int head) const { return is_tiled ? head % n_key_heads : head / group(); }

  int keys_width() const { return n_key_heads * key_dim; }
  int values_width() const { return n_value_heads * value_dim; }
  int convolved_width() const { return 2 * keys_width() + values_width(); }
  int head_width() const { return key_dim * value_dim; }

  // Offsets in the convolution's channels.
  int query_channel(int key_head) const { return key_head * key_dim; }
  int key_channel(int key_head) const { return keys_width() + key_head * key_dim; }
  int value_channel(int head) const { return 2 * keys_width() + head * value_dim; }

  // Offsets in a state.
  int state_width() const {
    return (n_taps - 1) * convolved_width() + n_value_heads * head_width();
  }
  int matrix_at(int head) const { return (n_taps - 1) * convolved_width() + head * head_width(); }

  // Offsets in a node's inputs.
  int input_width() const {
    return convolved_width() + keys_width() + values_width() + 2 * n_value_heads;
  }
  int key_at(int key_head) const { return convolved_width() + key_head * key_dim; }
  int value_at(int head) const { return convolved_width() + keys_width() + head * value_dim; }
  int beta_at(int head) const { return convolved_width() + keys_width() + values_width() + head; }
  int decay_at(int head) const { return beta_at(head) + n_value_heads; }

  bool operator==(const DeltaShape&) const = default;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CACHE_DELTA_SHAPE_H_
