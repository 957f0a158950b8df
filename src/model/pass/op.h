// SPDX-License-Identifier: Apache-2.0
// A forward pass as a list of ops. Families compose blocks, blocks append ops (pass_builder.h), the
// schedule derives barriers and prefetches (schedule.h), and one executor per kind of device runs
// the list (run_on_cpu.h). An op declares which buffers it reads and writes and how its work is
// divided among threads. No other code of a model deals with threads.
#ifndef OUTRIDER_MODEL_PASS_OP_H_
#define OUTRIDER_MODEL_PASS_OP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "io/tensor_source.h"
#include "model/cache/cache_group.h"
#include "model/config.h"
#include "model/pass/blocks.h"
#include "outrider/types.h"
#include "tensor/matrix.h"

namespace outrider {

// A buffer of the pass, (n_rows, width) f32, or some of its columns.
struct Rows {
  int buffer = -1;
  int width = 0;
  const std::vector<float>* bias = nullptr;  // (width), still to be added by the reader; or null
  int first = 0;                             // column of the buffer where they begin
};

// How an op's work is divided among a team's threads.
enum class Sharing {
  rows,     // each thread has the same rows in every op: no barrier between two such ops
  asked,    // the same, for rows with logits
  columns,  // by tiles of columns, dynamically: any thread may read any row
  heads,    // by heads
  groups,   // by groups of 32 columns
  slots,    // by slots, which are rows gathered by expert
};

namespace op {

// to = scale * table[token], or the table's row for the position. By rows.
struct Embed {
  enum class By { token, position };
  By by = By::token;
  const TensorView* table = nullptr;  // (vocabulary_size or context_length, width), of any float
                                      // type
  float scale = 1;
  Rows to;
};

// The cosines and sines of every row's position, and the scale of its queries, for the RoPE table
// of that number. By rows.
struct Angles {
  int rope = 0;
};

// to = norm(from) of each part, side by side; then the forms that products read. A part without a
// norm is copied. If `scale` is not 1, the result is multiplied by it. By rows; or by rows with
// logits, taken from all rows; or, for experts' products, by slots: for each expert in the order of
// ids, the rows that use it, in order. So a row has as many slots as it uses experts.
struct Normalise {
  struct Part {
    Rows from;
    const Norm* norm = nullptr;
  };
  std::array<Part, 2> parts;
  int n_parts = 1;
  Rows to;
  enum class Takes { own, asked, routed };
  Takes takes = Takes::own;
  float scale = 1;
  const Experts* experts = nullptr;  // for routed rows
};

// to = from W^T of up to four matrices that read the same rows. By columns.
struct Multiply {
  struct Product {
    const Matrix* matrix = nullptr;
    Rows to;
  };
  Rows from;
  std::array<Product, 4> products;
  int n_products = 1;
};

// Every row's experts and their weights, from the router's scores and their bias. By rows.
struct Route {
  Rows scores;
  const Experts* experts = nullptr;
};

// to = from W^T for up to two matrices of each expert in use, over the slots of its rows. By
// columns.
struct MultiplyExperts {
  struct Product {
    const std::vector<Matrix>* matrices = nullptr;  // of all experts, of one shape
    Rows to;
  };
  Rows from;
  std::array<Product, 2> products;
  int n_products = 1;
  const Experts* experts = nullptr;  // the experts
  ExpertMemory* memory = nullptr;    // for these matrices if they stay in their file
};

// to = sum of weight * (from + its expert's bias) over the slots of a row, in the order of its
// experts' ids. By rows.
struct SumExperts {
  Rows from, to;
  const Experts* experts = nullptr;
};

// For every head of queries, keys and values: bias, norm (unless it is over all heads, which was
// applied before), RoPE, and for queries the scale of their position. Then stores keys and values
// in the KV cache, rounded to its type. Every reader, including the row itself, reads them rounded.
// By heads.
struct PlaceHeads {
  Rows query;       // or empty
  Rows key, value;  // or both empty: reads another layer's
  const Attention* attention = nullptr;
  int cache_layer = 0;
};

// For every query head of a latent attention: the plain part goes to its slot (head by head, with
// the rows of each in order), the rotated part to `absorbed`, after the place of the first. For the
// key: the latent's norm, RoPE, then the KV cache. By heads.
struct PlaceLatents {
  Rows query;     // (n_heads, plain_dim + rope_dim)
  Rows key;       // (latent_dim + rope_dim), the product's output
  Rows kept;      // (latent_dim + rope_dim), for the cache
  Rows plain;     // slots, (plain_dim)
  Rows absorbed;  // (n_heads, latent_dim + rope_dim)
  const LatentAttention* latent = nullptr;
  int cache_layer = 0;
};

// Copies each head of the rows to its slot, in the forms that products read. By heads.
struct SplitHeads {
  Rows from;  // (n_heads, to.width)
  Rows to;    // slots
};

// to = from W^T, with a matrix per head: a row's heads side by side, `stride` apart. By columns.
struct MultiplyHeads {
  Rows from;                                      // slots
  const std::vector<Matrix>* matrices = nullptr;  // of all heads, of one shape
  Rows to;                                        // (n_heads, stride), the first elements of each
  int stride = 0;
};

// to = softmax(scale * query keys^T + position bias) values. Causal, unless attention reads whole
// blocks or the encoder's output; within the window; with capped scores and sinks if the attention
// has them. By heads.
struct Attend {
  Rows query, to;
  const Attention* attention = nullptr;
  int cache_layer = 0;
};

// One token of a recurrent layer, for every row: from the sequence's state at its last kept token
// and the inputs of the row's pending ancestors. The row's own inputs are stored with its node; the
// state does not change. One thread computes a group, or a key head, for all rows, in order.
//
// A convolution: by groups; writes a row's `to`, and the forms that products read. A delta rule: by
// key heads with their value heads; writes only `to`. The query's buffer is overwritten by the
// normalised query. Mamba-2: heads share their inputs. So one op computes these, by groups, without
// `to`: the query's buffer is overwritten by the convolved query, and keys and values are stored
// with the node. The next op updates the states over the nodes, by value heads.
struct Recur {
  struct Convolution {
    Rows from;  // the output of the convolution's input product
    const ShortConvolution* convolution = nullptr;
  };
  struct Delta {
    Rows query, key, value, gate, beta, decay;
    const DeltaNet* net = nullptr;
  };
  struct MambaInputs {
    Rows query, key, value;
    const Mamba2* mamba = nullptr;
  };
  struct Mamba {
    Rows query, step;
    const Mamba2* mamba = nullptr;
  };
  std::variant<Convolution, Delta, MambaInputs, Mamba> layer;
  Rows to = {};  // (convolution->width()), (shape.values_width())
  int cache_layer = 0;
};

// The forms of finished rows that products read. By groups.
struct Prepare {
  Rows rows;
};

// to = activation(gate) * up, and the forms that products read. Without `up`: activation(gate). By
// groups.
struct Gate {
  Rows gate, up, to;
  Activation activation = Activation::silu;
  float limit = 0;  // Experts::limit
  // If set, only slots of this rank's experts are computed; their biases are added to gate and up.
  const Experts* experts = nullptr;
};

// to += scale * (from + bias); without `from`: to += bias. With a gate, (1): scale *
// sigmoid(gate). By rows.
struct Add {
  Rows to, from;
  float scale = 1;
  Rows gate = {};
};

// Copies the rows for a caller that requests this layer's features; normalised if there is a norm.
// By rows.
struct LeaveFeature {
  int n_layers_done = 0;
  Rows from;
  const Norm* norm = nullptr;
};

// to[ids[i]] = from[i], minus infinity elsewhere: logits of a part of the vocabulary. By rows.
struct Spread {
  Rows from, to;
  const std::vector<TokenId>* ids = nullptr;  // (from.width)
};

// rows = cap * tanh(rows / cap), for rows with logits. By groups.
struct SoftCap {
  Rows rows;
  float cap = 0;  // above 0
};

// to = the columns of `from` on all ranks side by side, and the forms that products read; the bias
// of `from` is added before. Only rank 0 gets logits. It contains barriers. By rows.
struct Gather {
  Rows from;  // this rank's columns: a buffer with parts
  Rows to;
  bool asked = false;  // only rows with logits
};

// Gathers slots of experts that other ranks have. It contains barriers. By slots.
struct GatherExperts {
  Rows rows;
  const Experts* experts = nullptr;
};

}  // namespace op

struct Op {
  std::variant<op::Embed, op::Angles, op::Normalise, op::Multiply, op::PlaceHeads, op::Attend,
               op::Recur, op::Prepare, op::Gate, op::Add, op::LeaveFeature, op::Spread, op::SoftCap,
               op::Route, op::MultiplyExperts, op::SumExperts, op::PlaceLatents, op::SplitHeads,
               op::MultiplyHeads, op::Gather, op::GatherExperts>
      what;
  int layer = -1;       // the decoder layer that the op belongs to, or -1
  bool output = false;  // computes logits: skipped if none are requested
};

struct Buffer {
  int width = 0;
  bool asked = false;     // has a row per row with logits, not per row
  int n_slots = 0;        // above 0: has that many slots per row, gathered by expert or by head
  ActivationForms forms;  // that products read
  // If ranks hold some columns of the rows each: how many, in order; width is this rank's. Ops on
  // single columns use these buffers; all others use the result of op::Gather. Empty: the rows are
  // whole.
  std::vector<int> parts = {};
};

// Holds pointers into the weights, which must outlive it and not move.
struct PassList {
  std::vector<Op> ops;
  std::vector<Buffer> buffers;
  std::vector<RopeTable> ropes;
  // In order, one for each attention with its own keys and each recurrent layer.
  std::vector<LayerCache> caches;
  std::vector<int> cache_of_layer;  // for layers that attend: their index in `caches`; otherwise -1
  int n_layers = 0;
};

// Buffers without a name in families: the angles of each table; the KV cache as one; each row's
// experts and weights; their slots; and the states of recurrent layers as one.
inline constexpr int kAnglesBuffer = -2;
inline constexpr int kCacheBuffer = -3;
inline constexpr int kRoutesBuffer = -5;  // -4: kLogits (pass_builder.h)
inline constexpr int kSlotsBuffer = -6;
inline constexpr int kStateBuffer = -7;

// The state of such a convolution: the products of the preceding tokens.
constexpr RecurrentShape shape_of_convolution(int width, int n_taps) {
  return {.recurrence = Recurrence::convolution,
          .state_width = (n_taps - 1) * width,
          .input_width = width};
}

inline RecurrentShape shape_of_delta(const DeltaShape& shape) {
  return {.recurrence = Recurrence::delta,
          .state_width = shape.state_width(),
          .input_width = shape.input_width(),
          .delta = shape};
}

inline RecurrentShape shape_of_mamba(const DeltaShape& shape) {
  RecurrentShape kept = shape_of_delta(shape);
  kept.recurrence = Recurrence::mamba;
  return kept;
}

// use(buffer, sharing, writes) for everything the op reads and writes.
template <typename Use>
void for_each_access(const Op& op, const Use& use) {
  struct Visitor {
    const Use& use;
    void read(const Rows& rows, Sharing sharing) const {
      if (rows.buffer >= 0) use(rows.buffer, sharing, false);
    }
    void write(const Rows& rows, Sharing sharing) const { use(rows.buffer, sharing, true); }

    void operator()(const op::Embed& op) const { write(op.to, Sharing::rows); }
    void operator()(const op::Angles&) const { use(kAnglesBuffer, Sharing::rows, true); }
    void operator()(const op::Normalise& op) const {
      constexpr Sharing kSharing[] = {Sharing::rows, Sharing::asked, Sharing::slots};
      const Sharing sharing = kSharing[static_cast<int>(op.takes)];
      if (op.takes == op::Normalise::Takes::routed) {
        use(kRoutesBuffer, sharing, false);
        use(kSlotsBuffer, sharing, true);
      }
      for (int i = 0; i < op.n_parts; ++i) {
        const Rows& from = op.parts[static_cast<std::size_t>(i)].from;
        // The bias is added in place.
        from.bias != nullptr ? write(from, sharing) : read(from, sharing);
      }
      write(op.to, sharing);
    }
    void operator()(const op::Multiply& op) const {
      read(op.from, Sharing::columns);
      for (int i = 0; i < op.n_products; ++i) {
        write(op.products[static_cast<std::size_t>(i)].to, Sharing::columns);
      }
    }
    void operator()(const op::PlaceHeads& op) const {
      use(kAnglesBuffer, Sharing::heads, false);
      if (op.query.buffer >= 0) write(op.query, Sharing::heads);
      if (op.key.buffer < 0) return;
      write(op.key, Sharing::heads);
      write(op.value, Sharing::heads);
      use(kCacheBuffer, Sharing::heads, true);
    }
    void operator()(const op::PlaceLatents& op) const {
      use(kAnglesBuffer, Sharing::heads, false);
      read(op.query, Sharing::heads);
      read(op.key, Sharing::heads);
      write(op.kept, Sharing::heads);
      write(op.plain, Sharing::heads);
      write(op.absorbed, Sharing::heads);
      use(kCacheBuffer, Sharing::heads, true);
    }
    void operator()(const op::SplitHeads& op) const {
      read(op.from, Sharing::heads);
      write(op.to, Sharing::heads);
    }
    void operator()(const op::MultiplyHeads& op) const {
      read(op.from, Sharing::columns);
      write(op.to, Sharing::columns);
    }
    void operator()(const op::Attend& op) const {
      read(op.query, Sharing::heads);
      use(kCacheBuffer, Sharing::heads, false);
      write(op.to, Sharing::heads);
    }
    void operator()(const op::Recur& op) const {
      const Sharing sharing =
          std::visit([this](const auto& layer) { return read_of(layer); }, op.layer);
      use(kStateBuffer, sharing, true);
      if (op.to.buffer >= 0) write(op.to, sharing);
    }
    Sharing read_of(const op::Recur::Convolution& layer) const {
      write(layer.from, Sharing::groups);  // its bias is added
      return Sharing::groups;
    }
    Sharing read_of(const op::Recur::Delta& layer) const {
      write(layer.query, Sharing::heads);
      for (const Rows* rows : {&layer.key, &layer.value, &layer.gate, &layer.beta, &layer.decay}) {
        read(*rows, Sharing::heads);
      }
      return Sharing::heads;
    }
    Sharing read_of(const op::Recur::MambaInputs& layer) const {
      // Biases are added to the inputs.
      for (const Rows* rows : {&layer.query, &layer.key, &layer.value}) {
        write(*rows, Sharing::groups);
      }
      return Sharing::groups;
    }
    Sharing read_of(const op::Recur::Mamba& layer) const {
      read(layer.query, Sharing::heads);
      read(layer.step, Sharing::heads);
      return Sharing::heads;
    }
    void operator()(const op::Prepare& op) const { write(op.rows, Sharing::groups); }
    void operator()(const op::Gate& op) const {
      // Biases are added to gate and up in place.
      if (op.experts != nullptr) use(kSlotsBuffer, Sharing::groups, false);
      write(op.gate, Sharing::groups);
      if (op.up.buffer >= 0) write(op.up, Sharing::groups);
      write(op.to, Sharing::groups);
    }
    void operator()(const op::Add& op) const {
      if (op.from.buffer >= 0) write(op.from, Sharing::rows);  // its bias is added in place
      read(op.gate, Sharing::rows);
      write(op.to, Sharing::rows);
    }
    void operator()(const op::LeaveFeature& op) const { read(op.from, Sharing::rows); }
    void operator()(const op::Spread& op) const {
      read(op.from, Sharing::rows);
      write(op.to, Sharing::rows);
    }
    void operator()(const op::Route& op) const {
      op.scores.bias != nullptr ? write(op.scores, Sharing::rows) : read(op.scores, Sharing::rows);
      use(kRoutesBuffer, Sharing::rows, true);
    }
    void operator()(const op::MultiplyExperts& op) const {
      use(kSlotsBuffer, Sharing::columns, false);
      read(op.from, Sharing::columns);
      for (int i = 0; i < op.n_products; ++i) {
        write(op.products[static_cast<std::size_t>(i)].to, Sharing::columns);
      }
    }
    void operator()(const op::SumExperts& op) const {
      use(kRoutesBuffer, Sharing::rows, false);
      use(kSlotsBuffer, Sharing::rows, false);
      write(op.from, Sharing::slots);  // scaled in place
      write(op.to, Sharing::rows);
    }
    void operator()(const op::SoftCap& op) const { write(op.rows, Sharing::groups); }
    void operator()(const op::Gather& op) const {
      const Sharing sharing = op.asked ? Sharing::asked : Sharing::rows;
      write(op.from, sharing);  // its bias is added in place
      write(op.to, sharing);
    }
    void operator()(const op::GatherExperts& op) const {
      use(kSlotsBuffer, Sharing::slots, false);
      write(op.rows, Sharing::slots);
    }
  };
  std::visit(Visitor{use}, op.what);
}

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_OP_H_
