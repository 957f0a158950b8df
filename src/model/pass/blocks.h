// SPDX-License-Identifier: Apache-2.0
// The weights of a decoder's building blocks, and each block's parameters. A family defines which
// blocks a layer has and in which order (families/).
#ifndef OUTRIDER_MODEL_PASS_BLOCKS_H_
#define OUTRIDER_MODEL_PASS_BLOCKS_H_

#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include "io/tensor_source.h"
#include "model/cache/cache_group.h"
#include "model/cache/delta_shape.h"
#include "model/ranks/column_split.h"
#include "tensor/matrix.h"

namespace outrider {

class ExpertMemory;

// A product with an optional bias: y (n_columns) = W x + bias.
struct Linear {
  Matrix matrix;            // (n_columns, k)
  std::vector<float> bias;  // (n_columns), or empty
  // If ranks hold parts of it: the number of columns per rank, in order. Then matrix and bias are
  // this rank's part. Empty: the whole is here.
  std::vector<int> parts = {};
  bool empty() const { return matrix.n_columns() == 0; }  // no product at all
};

// y = weight * x / sqrt(mean(x^2) + epsilon) (Zhang and Sennrich 2019). If it removes the mean:
// weight * c / sqrt(mean(c^2) + epsilon) + bias with c = x - mean(x) (Ba et al. 2016). If a family
// stores the weight as an offset from 1, the 1 is added at load. A norm that keeps the mean may
// have groups: equal consecutive parts of the row, each with a mean of its own.
struct Norm {
  std::vector<float> weight;  // (width); empty: no norm
  float epsilon = 0;
  bool removes_mean = false;
  std::vector<float> bias = {};  // (width), or empty; only if it removes the mean
  int n_groups = 1;              // divides the width
  bool empty() const { return weight.empty(); }
};

enum class Activation {
  silu,       // x / (1 + e^-x)
  gelu_tanh,  // x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016)
  gelu_erf,   // x / 2 (1 + erf(x / sqrt(2))), which the former approximates
  sigmoid,    // 1 / (1 + e^-x)
  // For experts only, gate and up together: g / (1 + e^(-1.702 g)) * (u + 1) with a clamped gate g
  // and a clamped up u (kernels/table.h).
  clamped_swish,
  relu,          // max(0, x)
  relu_squared,  // max(0, x)^2 (So et al. 2021, arXiv 2109.08668, section 4.2)
};

// A bias added to scores by the distance of key and query (Raffel et al. 2020, arXiv 1910.10683,
// section 2.1): a number for each head and each distance from first to last. Positive distances are
// after the query.
struct PositionBias {
  int first = 0;
  int last = 0;
  std::vector<float> values;  // (n_heads, n_distances())

  int n_distances() const { return last - first + 1; }
  // For one head: a pointer whose d-th element is the bias of distance d.
  const float* of(int head) const {
    return values.data() +
           static_cast<std::size_t>(head) * static_cast<std::size_t>(n_distances()) - first;
  }
};

inline constexpr int kOwnKeys = -1;

// Grouped-query attention (Ainslie et al. 2023). Query and key rows are in the half-split order:
// pair i of a head's rotation is (i, i + head_dim / 2).
struct Attention {
  int n_heads = 0;
  int n_kv_heads = 0;  // divides n_heads
  int head_dim = 0;    // even
  // For a rank's part: the number of query heads per key-value head in the whole model, and how
  // many of the first one's are on other ranks. 0: n_heads / n_kv_heads.
  int group = 0;
  int first_in_group = 0;
  std::vector<int> parts = {};  // output widths of each rank; empty: all here
  float scale = 0;              // of the scores
  float softcap = 0;  // scaled scores become softcap * tanh(score / softcap), before windows and
                      // the softmax; 0: no cap
  int window = 0;     // a query reads that many tokens, including its own; 0: all
  int rope = 0;       // which of the model's RoPE tables rotates queries and keys, or kNoRope
  // The earlier layer whose keys and values it reads from the cache. Then it has none of its own,
  // and n_kv_heads and head_dim are that layer's. kOwnKeys: its own.
  int reads_layer = kOwnKeys;
  Linear query;     // (n_heads * head_dim, input width)
  Linear key;       // (n_kv_heads * head_dim, input width), or empty: reads another layer's
  Linear value;     // as key; empty if keys are not: values are the key product's output
  Linear gate;      // as query, or empty: the output is multiplied by its sigmoid
  Linear output;    // (dim, n_heads * head_dim)
  Norm query_norm;  // before RoPE, per head, (head_dim), or over all heads, (n_heads * head_dim);
                    // or empty
  Norm key_norm;    // as query_norm, (n_kv_heads * head_dim)
  bool norms_all_heads = false;  // whether the two norms are over all heads
  Norm value_norm = {};          // per value head, (head_dim); or empty
  // For each query head a logit that takes part in the softmax without a value, (n_heads); or
  // empty.
  std::vector<float> sinks = {};
  // A row reads all rows of its block in the pass, including later ones: for heads that draft a
  // block at once. A window then ends at the block's end.
  bool reads_whole_block = false;
  // Above 0: values are the first elements of keys, as in LayerCache; it is the output's width per
  // head.
  int values_in_keys = 0;
  bool has_own_keys() const { return reads_layer < 0; }
  bool values_are_keys() const { return value.empty() && !key.empty(); }
  int queries_per_key() const { return group > 0 ? group : n_heads / n_kv_heads; }
  // Whose keys and values it reads. encoder: its own, in a block whose rows all read one another.
  // cross: those of every encoder token; its own text's tokens store none.
  CacheSide side = CacheSide::text;
  // For all distances that queries read; or null.
  std::shared_ptr<const PositionBias> position_bias = nullptr;
};
inline constexpr int kNoRope = -1;

// Multi-head latent attention (DeepSeek-AI 2024, arXiv 2405.04434, section 2.1), in the absorbed
// form (end of 2.1.2) for passes of every width, so that a row's bits are its own. A token stores
// its latent and one rotated key part for all heads; the latent is also their value:
//
//   [latent, turned] = down read, latent = norm(latent), turned = RoPE(turned): the key
//   [plain_h, turned_h] = query product of head h; query_h = [key_up_h plain_h, RoPE(turned_h)]
//   y_h = softmax(scale * query_h keys^T) latents;  out = Wout [value_up_h y_h of all heads]
//
// In the products' outputs RoPE's pairs are adjacent.
struct LatentAttention {
  // Has one key head, latent_dim + rope_dim wide. Its query product gives (n_heads, plain_dim +
  // rope_dim); its output reads (n_heads, value_dim).
  Attention attention;
  int plain_dim = 0;
  int rope_dim = 0;    // even
  int latent_dim = 0;  // Attention::values_in_keys
  int value_dim = 0;   // per head
  // (query_rank, dim), whose output the query product reads; or empty: it reads the input.
  Linear query_down;
  Norm query_norm;               // (query_rank), of query_down's output
  Linear down;                   // (latent_dim + rope_dim, dim)
  Norm latent_norm;              // (latent_dim)
  std::vector<Matrix> key_up;    // (n_heads) times (latent_dim, plain_dim)
  std::vector<Matrix> value_up;  // (n_heads) times (value_dim, latent_dim)
  bool empty() const { return down.empty(); }
};

// The most taps of a convolution over the last tokens. Published models have 3 and 4.
inline constexpr int kMaxTaps = 32;

// A gated convolution over the last tokens, per channel (LFM2, Liquid AI 2025). The input product
// gives b, c and x, each (width). With u = b * x of this token and those before it (0 before the
// text), y = c * (sum over t of weight[t] u[t] + bias), the oldest token first in the sum. The
// layer adds Wout y.
struct ShortConvolution {
  int n_taps = 0;             // tokens that it reads, including its own; 2 to kMaxTaps
  std::vector<float> weight;  // (n_taps, width), the oldest token first
  std::vector<float> bias;    // (width), or empty
  Linear input;               // (3 * width, dim)
  Linear output;              // (dim, width)

  int width() const { return output.matrix.k(); }
};

// A gated DeltaNet (Yang, Kautz and Hatamizadeh 2024, arXiv 2412.06464), as in Qwen3-Next. Queries,
// keys and values are silu of a convolution over the last tokens, per channel. Queries and keys are
// divided by their length, queries also by sqrt(key_dim). Per head, with the state S (key_dim,
// value_dim), 0 before the text:
//
//   decay = exp(rate softplus(decay product + decay_bias)), beta = sigmoid(beta product)
//   S = decay S;  S += key (beta (value - S^T key))^T;  out = norm(S^T query) * silu(gate product)
//
// The layer adds Wout out.
struct DeltaNet {
  DeltaShape shape;
  std::vector<float> filter;       // (n_taps, convolved_width), the oldest token first
  std::vector<float> decay_rates;  // (n_value_heads), below 0
  std::vector<float> decay_bias;   // (n_value_heads)
  // (key_dim): with a constant weight and a suitable epsilon, the division by the length.
  Norm query_norm;
  Norm key_norm;       // as query_norm
  Norm norm;           // (value_dim)
  Linear query, key;   // (n_key_heads * key_dim, dim)
  Linear value, gate;  // (n_value_heads * value_dim, dim)
  Linear beta, decay;  // (n_value_heads, dim)
  Linear output;       // (dim, n_value_heads * value_dim)
};

// A Mamba-2 layer (Dao and Gu 2024, arXiv 2405.21060), as in Granite 4 and Nemotron-H. x, B and C
// are silu of a convolution over the last tokens, per channel, with a bias; the heads of a group
// share B and C. Per head, with the state S (key_dim, value_dim), 0 before the text:
//
//   dt = softplus(step product + step_bias), between min_step and max_step
//   S = exp(rate dt) S + B (dt x)^T;  y = S^T C + skip x;  out = norm(y * silu(gate product))
//
// with one norm over all heads or one per group. The layer adds Wout out.
struct Mamba2 {
  DeltaShape shape;
  std::vector<float> filter;       // (n_taps, convolved_width), the oldest token first
  std::vector<float> filter_bias;  // (convolved_width), or empty
  std::vector<float> decay_rates;  // (n_value_heads), below 0
  std::vector<float> step_bias;    // (n_value_heads)
  std::vector<float> skip;         // (n_value_heads)
  float min_step = 0;
  float max_step = std::numeric_limits<float>::infinity();
  Norm norm;           // (n_value_heads * value_dim)
  Linear query, key;   // C and B, (n_key_heads * key_dim, dim)
  Linear value, gate;  // x and its gate, (n_value_heads * value_dim, dim)
  Linear step;         // (n_value_heads, dim)
  Linear output;       // (dim, n_value_heads * value_dim)
};

// Columns of a state that are updated together over a pass's nodes: as many as a step takes at once
// (kernels/delta_rule.h). With 128 rows that is 32 kB; other widths are unmeasured.
inline constexpr int kDeltaColumns = 64;

// Wdown (activation(Wgate x) * Wup x) (Shazeer 2020).
struct GatedMlp {
  Activation activation = Activation::silu;
  Linear gate;  // (hidden_dim, dim)
  Linear up;    // (hidden_dim, dim)
  Linear down;  // (dim, hidden_dim)
};

// Wdown activation(Wup x).
struct PlainMlp {
  Activation activation = Activation::gelu_tanh;
  Linear up;    // (hidden_dim, dim)
  Linear down;  // (dim, hidden_dim)
};

// How the scores of a router become the weights of a row's experts.
enum class ExpertWeights {
  softmax,       // over all experts
  softmax_used,  // over those that the row uses
  sigmoid,       // of each score separately
  sigmoid_used,  // the same, divided by their sum
};

// Experts in groups of consecutive ids: a row uses only experts of its best groups (DeepSeek-AI
// 2024, arXiv 2405.04434, section 2.2.2; 2024, arXiv 2412.19437, section 2.1.2).
struct ExpertGroups {
  // A group's worth: its best expert, or the sum of its two best.
  enum class Worth { best, best_two };
  int n = 1;       // divides the number of experts
  int n_used = 1;  // at most n
  Worth worth = Worth::best;
  bool choose() const { return n_used < n; }
};

// Sum of weight * (Wdown (activation(Wgate x) * Wup x)) over the n_used experts that the router
// scores highest for a row (Shazeer et al. 2017, arXiv 1701.06538; Jiang et al. 2024, arXiv
// 2401.04088). Each product has its bias, if any. Ties go to the lowest ids, also among groups; the
// sum is in the order of ids. With sigmoids, the choice is by their values. Without a gate: Wdown
// activation(Wup x). Experts may read a narrower row than their router (Nemotron 3 Super): x is
// narrow(read), and the layer adds widen(sum).
struct Experts {
  ExpertWeights weights = ExpertWeights::softmax_used;
  int n_used = 0;  // per row; at most n(), and at most what the used groups have
  ExpertGroups groups = {};
  float scale = 1;                      // a factor on all weights
  std::vector<float> scales = {};       // (n), a factor per expert; or empty
  std::vector<float> choice_bias = {};  // (n), added for the choice, not for the weights; or empty
  Activation activation = Activation::silu;
  float limit = 0;           // above 0, for clamped_swish
  Matrix router;             // (n, dim), f32: a row's experts must not depend on a rounding
  std::vector<Matrix> gate;  // (n) times (hidden_dim, width of x), or empty
  std::vector<Matrix> up;    // (n) times the same
  std::vector<Matrix> down;  // (n) times (width of x, hidden_dim)
  Linear narrow = {};        // (width of x, dim), less than dim; or empty: x is the input
  Linear widen = {};         // (dim, width of x), if and only if there is `narrow`
  // Biases, or empty.
  std::vector<float> router_bias = {};  // (n), on scores: affects choice and weights
  std::vector<float> gate_bias = {};    // (n, hidden_dim); if and only if there is up_bias
  std::vector<float> up_bias = {};      // as gate_bias
  std::vector<float> down_bias = {};    // (n, dim), weighted like the product
  ExpertMemory* memory = nullptr;       // for gate, up and down if these stay in their file
  // If ranks hold some of the experts each: how many, in the order of ids. Other ranks' matrices
  // are empty here. Empty: all are here.
  std::vector<int> parts = {};
  int rank = 0;  // this rank
  int n() const { return static_cast<int>(up.size()); }
  // The ids of this rank's experts.
  Range own_ids() const { return parts.empty() ? Range{0, n()} : part_of(parts, rank); }
  // One of these; all experts have the same shape.
  const Matrix& own(const std::vector<Matrix>& matrices) const {
    return matrices[static_cast<std::size_t>(own_ids().begin)];
  }
  bool empty() const { return up.empty(); }
};
// An expert that every row uses besides its own, times the sigmoid of one number per row, if it has
// a gate. Several of DeepSeek's are stored as one wide expert.
struct SharedExpert {
  GatedMlp mlp;
  Linear gate;  // (1, dim), f32, as routers are; or empty
  bool empty() const { return mlp.gate.empty(); }
};
// A second token embedding, with a part for each layer (Gemma 3n and 4). Layer i gets
// norm(projection e)_i + table_scale * table[token]_i, where e is the first embedding, scaled like
// the stream. The norm is over each layer's part separately.
struct LayerInputs {
  int width = 0;          // of one layer's part; 0: none
  TensorView table = {};  // (vocabulary_size, n_layers * width), as stored
  float table_scale = 1;
  Linear projection = {};  // (n_layers * width, dim)
  Norm norm = {};          // (width)
  bool empty() const { return width == 0; }
};

// How a layer uses its part x: it adds norm(output (activation(gate stream) * x)) to the stream.
struct LayerInput {
  Activation activation = Activation::gelu_tanh;
  Linear gate = {};    // (width, dim)
  Linear output = {};  // (dim, width)
  Norm after = {};     // (dim)
  bool empty() const { return gate.empty(); }
};

// Twice as many as in any model.
inline constexpr int kMaxExperts = 1024;

// One decoder layer. A family uses some of the norms, one of the attentions, convolution, DeltaNet
// and Mamba-2, and one of the MLPs.
struct DecoderLayer {
  Norm before_attention;  // or before its substitute
  Attention attention;
  LatentAttention latent;
  ShortConvolution convolution;
  DeltaNet delta;
  Mamba2 mamba;
  Norm after_attention;  // of attention's output
  Norm before_cross;
  Attention cross;  // to the encoder's output; in the decoder of an encoder-decoder
  Norm before_mlp;
  GatedMlp mlp;
  PlainMlp plain_mlp;
  Experts experts;
  SharedExpert shared_expert;
  Norm after_mlp;  // of the MLP's output
  // For layers with experts beside their MLP, which read the stream through norms of their own: the
  // router's input, the experts' input, and both outputs before they are added.
  Norm before_router;
  Norm before_experts;
  Norm after_dense;
  Norm after_experts;
  LayerInput input;
  float stream_scale = 1;  // a factor on the stream after the layer
};

// use(linear) for the layer's products, except those of single experts.
template <typename Layer, typename Use>
void for_each_linear(Layer& layer, const Use& use) {
  for (auto* linear : {&layer.attention.query,
                       &layer.attention.key,
                       &layer.attention.value,
                       &layer.attention.gate,
                       &layer.attention.output,
                       &layer.cross.query,
                       &layer.cross.key,
                       &layer.cross.value,
                       &layer.cross.output,
                       &layer.latent.attention.query,
                       &layer.latent.attention.output,
                       &layer.latent.query_down,
                       &layer.latent.down,
                       &layer.convolution.input,
                       &layer.convolution.output,
                       &layer.delta.query,
                       &layer.delta.key,
                       &layer.delta.value,
                       &layer.delta.gate,
                       &layer.delta.beta,
                       &layer.delta.decay,
                       &layer.delta.output,
                       &layer.mamba.query,
                       &layer.mamba.key,
                       &layer.mamba.value,
                       &layer.mamba.gate,
                       &layer.mamba.step,
                       &layer.mamba.output,
                       &layer.mlp.gate,
                       &layer.mlp.up,
                       &layer.mlp.down,
                       &layer.plain_mlp.up,
                       &layer.plain_mlp.down,
                       &layer.experts.narrow,
                       &layer.experts.widen,
                       &layer.shared_expert.mlp.gate,
                       &layer.shared_expert.mlp.up,
                       &layer.shared_expert.mlp.down,
                       &layer.shared_expert.gate,
                       &layer.input.gate,
                       &layer.input.output}) {
    if (!linear->empty()) use(*linear);
  }
}

// use(matrix) for the matrices of single heads.
template <typename Use>
void for_each_matrix(const LatentAttention& latent, const Use& use) {
  for (const auto* matrices : {&latent.key_up, &latent.value_up}) {
    for (const Matrix& matrix : *matrices) use(matrix);
  }
}

// use(matrix) for the router's and every expert's.
template <typename Use>
void for_each_matrix(const Experts& experts, const Use& use) {
  if (experts.empty()) return;
  use(experts.router);
  for (const auto* matrices : {&experts.gate, &experts.up, &experts.down}) {
    for (const Matrix& matrix : *matrices) use(matrix);
  }
}

// use(norm) for the layer's norms.
template <typename Use>
void for_each_norm(const DecoderLayer& layer, const Use& use) {
  for (const Norm* norm :
       {&layer.before_attention, &layer.attention.query_norm, &layer.attention.key_norm,
        &layer.latent.query_norm, &layer.latent.latent_norm, &layer.delta.norm, &layer.mamba.norm,
        &layer.after_attention, &layer.before_cross, &layer.before_mlp, &layer.after_mlp,
        &layer.before_router, &layer.before_experts, &layer.after_dense, &layer.after_experts,
        &layer.input.after}) {
    if (!norm->empty()) use(*norm);
  }
}

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_BLOCKS_H_
