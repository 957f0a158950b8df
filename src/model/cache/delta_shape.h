// What a layer with a gated delta rule, or one of Mamba-2, keeps, and where it stands. Of the
// latter key heads are groups, queries C, keys B, values x, and beta is the length of the step.
//
// The state of a token: what the convolution reads of the tokens up to it, (n_taps - 1,
// convolved_width()) inputs of its channels, oldest token first; then of each value head the matrix
// S, (key_dim, value_dim). Channels are the queries of all key heads, their keys, and the values of
// all value heads.
//
// The inputs of a pending node: the convolution's, (convolved_width()); what the update of S reads:
// keys (n_key_heads, key_dim), convolved and (delta rule) normalised; values (n_value_heads,
// value_dim), convolved; of each value head beta, then of each its decay.
//
// A plain value.
#ifndef OUTRIDER_MODEL_CACHE_DELTA_SHAPE_H_
#define OUTRIDER_MODEL_CACHE_DELTA_SHAPE_H_

namespace outrider {

struct DeltaShape {
  int n_taps = 0;  // tokens that the convolution reads, the node's own included; at least 2
  int n_key_heads = 0;
  int n_value_heads = 0;  // a multiple of n_key_heads
  int key_dim = 0;        // of a head
  int value_dim = 0;      // of a head
  // Which key head a value head reads: j mod n_key_heads, as GGUF has Qwen3.5's, or neighbours the
  // same one.
  bool is_tiled = false;

  int group() const { return n_value_heads / n_key_heads; }  // value heads of one key head
  // Of a key head's value heads the i-th.
  int value_head(int key_head, int i) const {
    return is_tiled ? i * n_key_heads + key_head : key_head * group() + i;
  }

  int key_head_of(int head) const { return is_tiled ? head % n_key_heads : head / group(); }

  int keys_width() const { return n_key_heads * key_dim; }
  int values_width() const { return n_value_heads * value_dim; }
  int convolved_width() const { return 2 * keys_width() + values_width(); }
  int head_width() const { return key_dim * value_dim; }

  // In the convolution's channels.
  int query_channel(int key_head) const { return key_head * key_dim; }
  int key_channel(int key_head) const { return keys_width() + key_head * key_dim; }
  int value_channel(int head) const { return 2 * keys_width() + head * value_dim; }

  // In a state.
  int state_width() const {
    return (n_taps - 1) * convolved_width() + n_value_heads * head_width();
  }
  int matrix_at(int head) const { return (n_taps - 1) * convolved_width() + head * head_width(); }

  // In a node's inputs.
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
