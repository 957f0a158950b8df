// The weights of a decoder's building blocks, and what is particular to each of them. A family says
// which blocks a layer has and in which order (families/).
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
  // Where ranks have parts of it: how many columns each one has, in their order. matrix and bias
  // are this rank's then. Empty: all of them are here.
  std::vector<int> parts = {};
  bool empty() const { return matrix.n_columns() == 0; }  // no product at all
};

// y = weight * x / sqrt(mean(x^2) + epsilon) (Zhang and Sennrich 2019) or, where it removes the
// mean, weight * c / sqrt(mean(c^2) + epsilon) + bias of c = x - mean(x) (Ba et al. 2016). Families
// that store a norm as an offset from 1 have 1 added at load. Where it keeps the mean it may be of
// groups: so many equal parts of the row, one behind the other, each with a mean of its own.
struct Norm {
  std::vector<float> weight;  // (width); empty: no norm
  float epsilon = 0;
  bool removes_mean = false;
  std::vector<float> bias = {};  // (width), or empty; of those that remove the mean
  int n_groups = 1;              // divides the width
  bool empty() const { return weight.empty(); }
};

enum class Activation {
  silu,       // x / (1 + e^-x)
  gelu_tanh,  // x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016)
  gelu_erf,   // x / 2 (1 + erf(x / sqrt(2))), what the former approximates
  sigmoid,    // 1 / (1 + e^-x)
  // Of experts alone, gate and up together: g / (1 + e^(-1.702 g)) * (u + 1) of a clamped gate g
  // and a clamped up u (kernels/table.h).
  clamped_swish,
  relu,          // max(0, x)
  relu_squared,  // max(0, x)^2 (So et al. 2021, arXiv 2109.08668, section 4.2)
};

// What scores get added by how far a key stands from its query (Raffel et al. 2020, arXiv
// 1910.10683, section 2.1): a number for each head and distance, first to last, behind the query
// above 0.
struct PositionBias {
  int first = 0;
  int last = 0;
  std::vector<float> values;  // (n_heads, n_distances())

  int n_distances() const { return last - first + 1; }
  // Head by head, the number of distance d stands d from here.
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
  // Of a rank's part: how many query heads read a key-value head in the whole model, and how many
  // of those that read its first one other ranks have. 0: n_heads / n_kv_heads.
  int group = 0;
  int first_in_group = 0;
  std::vector<int> parts = {};  // widths of what attention gives on each rank; empty: all here
  float scale = 0;              // of the scores
  float softcap = 0;  // scaled scores become softcap * tanh(score / softcap), before windows and
                      // the softmax; 0: they stay
  int window = 0;     // a query reads that many tokens back, its own included; 0: all
  int rope = 0;       // which of the model's RoPE tables turns queries and keys, or kNoRope
  // The earlier layer whose keys and values it reads from the cache: it has none of its own then,
  // and n_kv_heads and head_dim are that layer's. kOwnKeys: its own.
  int reads_layer = kOwnKeys;
  Linear query;     // (n_heads * head_dim, width of what attention reads)
  Linear key;       // (n_kv_heads * head_dim, likewise), or empty: another layer's are read
  Linear value;     // as key; empty beside keys: values are what the key product gives
  Linear gate;      // as query, or empty: what attention gives is multiplied by its sigmoid
  Linear output;    // (dim, n_heads * head_dim)
  Norm query_norm;  // before RoPE, of every head, (head_dim), or of all heads together,
                    // (n_heads * head_dim); or empty
  Norm key_norm;    // likewise, (n_kv_heads * head_dim)
  bool norms_all_heads = false;  // which of the two the norms are
  Norm value_norm = {};          // of every head of values, (head_dim); or empty
  // Of each query head a logit that joins the softmax and brings no value, (n_heads); or empty.
  std::vector<float> sinks = {};
  // A row reads all rows of its block in the pass, those behind it too: for heads that draft a
  // block at once. Its window, if there is one, ends at the block's end then.
  bool reads_whole_block = false;
  // Above 0: keys hold their values, as LayerCache has it; what attention gives is so wide a head.
  int values_in_keys = 0;
  bool has_own_keys() const { return reads_layer < 0; }
  bool values_are_keys() const { return value.empty() && !key.empty(); }
  int queries_per_key() const { return group > 0 ? group : n_heads / n_kv_heads; }
  // Whose keys and values it reads. encoder: in a block whose rows all read one another. cross: of
  // every token that the encoder read; its own text's tokens leave none.
  CacheSide side = CacheSide::text;
  // Of all distances that queries read; or null.
  std::shared_ptr<const PositionBias> position_bias = nullptr;
};
inline constexpr int kNoRope = -1;

// Multi-head latent attention (DeepSeek-AI 2024, arXiv 2405.04434, section 2.1), in the absorbed
// form (likewise, at the end of 2.1.2) in passes of every width, so that a row's bits are its own.
// A token keeps its latent and one key part that RoPE turned, for all heads; the latent is their
// value, too:
//
//   [latent, turned] = down read, latent = norm(latent), turned = RoPE(turned): the key
//   [plain_h, turned_h] = query product of head h; query_h = [key_up_h plain_h, RoPE(turned_h)]
//   y_h = softmax(scale * query_h keys^T) latents;  out = Wout [value_up_h y_h of all heads]
//
// RoPE's pairs lie side by side in what the products give.
struct LatentAttention {
  // Of one head of keys, latent_dim + rope_dim wide. Its query product gives (n_heads, plain_dim +
  // rope_dim); its output reads (n_heads, value_dim).
  Attention attention;
  int plain_dim = 0;
  int rope_dim = 0;              // even
  int latent_dim = 0;            // Attention::values_in_keys
  int value_dim = 0;             // of a head
  Linear query_down;             // (query_rank, dim), what the query product reads; or empty: read
  Norm query_norm;               // (query_rank), of that
  Linear down;                   // (latent_dim + rope_dim, dim)
  Norm latent_norm;              // (latent_dim)
  std::vector<Matrix> key_up;    // (n_heads) times (latent_dim, plain_dim)
  std::vector<Matrix> value_up;  // (n_heads) times (value_dim, latent_dim)
  bool empty() const { return down.empty(); }
};

// Of convolutions over the last tokens. Published models have 3 and 4.
inline constexpr int kMostTaps = 32;

// A gated convolution over the last tokens, channel by channel (LFM2, Liquid AI 2025). The input
// product gives b, c and x side by side, each (width); of u = b * x of this token and those before
// it, with 0 before the text, y = c * (sum over t of weight[t] u[t] + bias), the oldest token first
// in the sum; Wout y is what the layer adds.
struct ShortConvolution {
  int n_taps = 0;             // tokens that it reads, its own included; 2 to kMostTaps
  std::vector<float> weight;  // (n_taps, width), of the oldest token first
  std::vector<float> bias;    // (width), or empty
  Linear input;               // (3 * width, dim)
  Linear output;              // (dim, width)

  int width() const { return output.matrix.k(); }
};

// A gated DeltaNet (Yang, Kautz and Hatamizadeh 2024, arXiv 2412.06464), as Qwen3-Next has it.
// Queries, keys and values go through silu of a convolution over the last tokens, channel by
// channel; queries and keys are divided by their length, queries by sqrt(key_dim), too. By head,
// with the state S (key_dim, value_dim), 0 before the text:
//
//   decay = exp(rate softplus(decay product + decay_bias)), beta = sigmoid(beta product)
//   S = decay S;  S += key (beta (value - S^T key))^T;  out = norm(S^T query) * silu(gate product)
//
// and Wout out is what the layer adds.
struct DeltaNet {
  DeltaShape shape;
  std::vector<float> filter;       // (n_taps, convolved_width), of the oldest token first
  std::vector<float> decay_rates;  // (n_value_heads), below 0
  std::vector<float> decay_bias;   // (n_value_heads)
  Norm query_norm;                 // (key_dim): with one weight and the right epsilon the division
  Norm key_norm;                   // likewise
  Norm norm;                       // (value_dim)
  Linear query, key;               // (n_key_heads * key_dim, dim)
  Linear value, gate;              // (n_value_heads * value_dim, dim)
  Linear beta, decay;              // (n_value_heads, dim)
  Linear output;                   // (dim, n_value_heads * value_dim)
};

// A layer of Mamba-2 (Dao and Gu 2024, arXiv 2405.21060), as Granite 4 and Nemotron-H have it. x, B
// and C go through silu of a convolution over the last tokens, channel by channel, with its bias;
// heads of a group share B and C. By head, with the state S (key_dim, value_dim), 0 before the
// text:
//
//   dt = softplus(step product + step_bias), between least_step and most_step
//   S = exp(rate dt) S + B (dt x)^T;  y = S^T C + skip x;  out = norm(y * silu(gate product))
//
// with one norm of all heads or one of each group's, and Wout out is what the layer adds.
struct Mamba2 {
  DeltaShape shape;
  std::vector<float> filter;       // (n_taps, convolved_width), of the oldest token first
  std::vector<float> filter_bias;  // (convolved_width), or empty
  std::vector<float> decay_rates;  // (n_value_heads), below 0
  std::vector<float> step_bias;    // (n_value_heads)
  std::vector<float> skip;         // (n_value_heads)
  float least_step = 0;
  float most_step = std::numeric_limits<float>::infinity();
  Norm norm;           // (n_value_heads * value_dim)
  Linear query, key;   // C and B, (n_key_heads * key_dim, dim)
  Linear value, gate;  // x and what gates it, (n_value_heads * value_dim, dim)
  Linear step;         // (n_value_heads, dim)
  Linear output;       // (dim, n_value_heads * value_dim)
};

// Columns of a state that go over a pass's nodes together: as many as a step takes at once
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
  sigmoid,       // of each score by itself
  sigmoid_used,  // likewise, divided by their sum
};

// Experts in groups of consecutive ids: a row uses experts of its best groups alone (DeepSeek-AI
// 2024, arXiv 2405.04434, section 2.2.2; 2024, arXiv 2412.19437, section 2.1.2).
struct ExpertGroups {
  // What a group is worth: its best expert, or its two best ones together.
  enum class Worth { best, best_two };
  int n = 1;       // divides the number of experts
  int n_used = 1;  // at most n
  Worth worth = Worth::best;
  bool choose() const { return n_used < n; }
};

// Sum of weight * (Wdown (activation(Wgate x) * Wup x)) over the n_used experts of a row that its
// router scores highest (Shazeer et al. 2017, arXiv 1701.06538; Jiang et al. 2024, arXiv
// 2401.04088), each product with its bias where there are any. Of equal scores the lowest ids
// count, of equal groups too; the sum is in the order of ids. By sigmoid, it is what that gives
// that chooses. Without a gate: Wdown activation(Wup x). Experts may read a narrower row than their
// router does (Nemotron 3 Super): x is narrow(read), and the layer adds
// widen(sum).
struct Experts {
  ExpertWeights weights = ExpertWeights::softmax_used;
  int n_used = 0;  // of each row, at most n(), and at most what its groups have
  ExpertGroups groups = {};
  float scale = 1;                      // weights are multiplied by it
  std::vector<float> scales = {};       // (n), and each by its expert's; or empty
  std::vector<float> choice_bias = {};  // (n), added to what chooses, not to what weighs; or empty
  Activation activation = Activation::silu;
  float limit = 0;           // above 0, of clamped_swish
  Matrix router;             // (n, dim), f32: which experts a row uses must not hang on a rounding
  std::vector<Matrix> gate;  // (n) times (hidden_dim, width of x), or empty
  std::vector<Matrix> up;    // (n) times the same
  std::vector<Matrix> down;  // (n) times (width of x, hidden_dim)
  Linear narrow = {};        // (width of x, dim), less than dim; or empty: x is what is read
  Linear widen = {};         // (dim, width of x), with `narrow` or not at all
  // Biases, or empty.
  std::vector<float> router_bias = {};  // (n), of scores: they choose and weigh
  std::vector<float> gate_bias = {};    // (n, hidden_dim); with up_bias or not at all
  std::vector<float> up_bias = {};      // likewise
  std::vector<float> down_bias = {};    // (n, dim), weighed like the product
  ExpertMemory* memory = nullptr;       // of gate, up and down where these stay in their file
  // Where ranks have some of the experts each: how many, in the order of ids. The others' matrices
  // are empty here. Empty: all of them are here.
  std::vector<int> parts = {};
  int rank = 0;  // whose part is here
  int n() const { return static_cast<int>(up.size()); }
  // The ids of those that are here.
  Range own_ids() const { return parts.empty() ? Range{0, n()} : part_of(parts, rank); }
  // One of these; experts are alike.
  const Matrix& own(const std::vector<Matrix>& matrices) const {
    return matrices[static_cast<std::size_t>(own_ids().begin)];
  }
  bool empty() const { return up.empty(); }
};
// An expert that every row uses beside its own: times the sigmoid of one number a row, where it has
// a gate. Several of DeepSeek's are one that is as wide as all of them.
struct SharedExpert {
  GatedMlp mlp;
  Linear gate;  // (1, dim), f32, as routers are; or empty
  bool empty() const { return mlp.gate.empty(); }
};
// A second embedding of tokens, which gives each layer a part of its own (Gemma 3n and 4). Layer i
// gets norm(projection e)_i + table_scale * table[token]_i of the first embedding e, scaled as the
// stream is; the norm is of each layer's part by itself.
struct LayerInputs {
  int width = 0;          // of one layer's part; 0: there are none
  TensorView table = {};  // (vocabulary_size, n_layers * width), as stored
  float table_scale = 1;
  Linear projection = {};  // (n_layers * width, dim)
  Norm norm = {};          // (width)
  bool empty() const { return width == 0; }
};

// What a layer makes of its part x: norm(output (activation(gate stream) * x)) is added to the
// stream.
struct LayerInput {
  Activation activation = Activation::gelu_tanh;
  Linear gate = {};    // (width, dim)
  Linear output = {};  // (dim, width)
  Norm after = {};     // (dim)
  bool empty() const { return gate.empty(); }
};

// Twice as many as any model has.
inline constexpr int kMostExperts = 1024;

// One decoder layer. A family uses the norms, the one of the attentions, convolution, DeltaNet and
// Mamba-2, and the one of the MLPs that it has.
struct DecoderLayer {
  Norm before_attention;  // or before what stands in its place
  Attention attention;
  LatentAttention latent;
  ShortConvolution convolution;
  DeltaNet delta;
  Mamba2 mamba;
  Norm after_attention;  // of what attention adds to the stream
  Norm before_cross;
  Attention cross;  // to what an encoder read; of an encoder-decoder's decoder
  Norm before_mlp;
  GatedMlp mlp;
  PlainMlp plain_mlp;
  Experts experts;
  SharedExpert shared_expert;
  Norm after_mlp;  // of what the MLP adds
  // Of layers whose experts stand beside their MLP, and read the stream by norms of their own: what
  // the router reads, what experts read, and what each of the two gives before both are added.
  Norm before_router;
  Norm before_experts;
  Norm after_dense;
  Norm after_experts;
  LayerInput input;
  float stream_scale = 1;  // the stream is multiplied by it behind the layer
};

// use(linear) for the products that the layer has, but for those of single experts.
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

// use(matrix) for those of single heads.
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

// use(norm) for the norms that the layer has.
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
