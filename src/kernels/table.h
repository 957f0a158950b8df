// SPDX-License-Identifier: Apache-2.0
// The kernels of one instruction set, as a table of plain functions over raw pointers.
//
// Every algorithm is written once (algorithms.h) over a vector of 16 floats and compiled once per
// instruction set; the tables differ in speed only. Every slot promises, on every table:
//
// - Batch invariance. A row of output depends only on its own row of input: not on n_rows, nor on
//   which tiles or rows the call covers.
// - Same bits on every table (a NaN is a NaN, whatever its payload). Integer sums are exact. Float
//   reductions use 16 virtual lanes (element i belongs to lane i mod 16) and one fixed tree (lane j
//   adds lane j+8, then j+4, j+2, j+1). Matrix products with f32 and bf16 weights, and attention,
//   add the products of an output in sequence, each with one fused multiply-add. Quantised products
//   go group by group, or block by block of 256, with the exact integer dot: sum = fma(dot, scale *
//   x_scale, sum), then for int4 sum = fma(x_sum * x_scale, minimum, sum); formats/scales.h has
//   those of the other formats.
// - One exception: a table with round_row has different arithmetic for bf16 weights and, with them,
//   for keys and values in bf16. It is that of instructions that add products in pairs, and is
//   batch-invariant like all else.
// - No allocation, no exceptions, no globals: any thread may call any slot. The float environment
//   must be the default (round to nearest, no flush to zero), which tensor/team.h ensures.
#ifndef OUTRIDER_KERNELS_TABLE_H_
#define OUTRIDER_KERNELS_TABLE_H_

#include <cstddef>
#include <cstdint>

namespace outrider::kernels {

inline constexpr int kLanes = 16;        // virtual lanes of every float reduction
inline constexpr int kTileColumns = 16;  // outputs (rows of W) in one packed tile
inline constexpr int kGroup = 32;        // elements along K that share a scale
inline constexpr int kChunkKeys =
    64;  // keys in one step of the online softmax, by logical position

// Attention processes positions split by split, independently, and merges the results in order. So
// threads can share a head's keys ("split-KV", Dao and others 2023, "Flash-Decoding for
// long-context inference"). Splits begin at fixed positions, as chunks do. A separate split costs 0
// to 4 % of attending to 1024 keys (docs/performance.md).
inline constexpr int kSplitKeys = 1024;
static_assert(kSplitKeys % kChunkKeys == 0);
constexpr int splits_of(int n_keys) { return (n_keys + kSplitKeys - 1) / kSplitKeys; }

inline constexpr int kMaxAttendRows = 16;    // tokens of one call of attend
inline constexpr int kMaxAttendQueries = 8;  // query heads processed together

// The form of a packed matrix's weights: plain floats, floats rounded on request (int8, int4), and
// GGUF's quantised blocks as stored (formats/block_formats.h).
enum class WeightKind : int {
  f32,
  bf16,
  int8,
  int4,
  q2_k,
  q3_k,
  q4_k,
  q5_0,
  q5_1,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4
};
inline constexpr const char* kWeightNames[] = {"f32",  "bf16",   "int8",   "int4", "q2_k",
                                               "q3_k", "q4_k",   "q5_0",   "q5_1", "q5_k",
                                               "q6_k", "iq4_nl", "iq4_xs", "mxfp4"};
inline constexpr int kWeightKinds = sizeof kWeightNames / sizeof kWeightNames[0];
constexpr const char* name_of(WeightKind kind) { return kWeightNames[static_cast<int>(kind)]; }

// The form of inputs that products with some weights read. int8: a scale for each group. blocks:
// int8 with a scale for each block of 256, and the sums of groups; block_halves: also the sums of
// half groups.
enum class ActivationForm { f32, int8, blocks, block_halves, bf16 };
// int8: for each head of a token's keys, and of its values, n bytes and a scale.
enum class KvKind : int { f32, bf16, int8 };
inline constexpr int kKvKinds = 3;
// Limit for heads whose numbers are rounded first: int8, stored and read, and attend_bf16_pairs.
// DeepSeek's latent attention has this width: a latent of 512 elements and 64 rotated ones.
inline constexpr int kMaxRoundedHeadDim = 576;

constexpr int groups_of(int k) { return (k + kGroup - 1) / kGroup; }

// Elements along K of the formats with scales of scales (formats/scales.h). Their matrices have
// whole blocks.
inline constexpr int kBlock = 256;
inline constexpr int kBlockGroups = kBlock / kGroup;
constexpr int blocks_of(int k) { return k / kBlock; }
// Contiguous elements of a row among inputs in blocks: what matrix units take at a time.
inline constexpr int kBlockRun = 64;

// Prepared inputs are in the order of groups, with the rows of a group adjacent, and space for
// row_slots(n_rows) rows. Matrix units take up to 16 rows at a time: the tiles that this needs have
// one height, a multiple of 4. Rows past n_rows are read without effect.
constexpr int row_tiles(int n_rows) { return (n_rows + 15) / 16; }
constexpr int row_tile_height(int n_rows) {
  const int tiles = row_tiles(n_rows);
  return tiles == 0 ? 0 : ((n_rows + tiles - 1) / tiles + 3) / 4 * 4;
}
constexpr int row_slots(int n_rows) { return row_tiles(n_rows) * row_tile_height(n_rows); }

// The place of one row's group 0 among the prepared inputs of quantised weights; group g is g *
// slots rows further on.
struct QuantizedRow {
  std::int8_t* values;  // (groups, slots, 32)
  float* scales;        // (groups, slots)
  std::int32_t* sums;   // (groups, slots): of the group's values
  float* scaled_sums;   // (groups, slots): sum * scale
  int slots;
};

// The same for weights in blocks: the place of its block 0.
struct QuantizedBlocks {
  std::int8_t* values;       // (blocks, 4, slots, 64)
  float* scales;             // (blocks, slots)
  std::int16_t* group_sums;  // (blocks, slots, 8): of the groups' values
  float* float_sums;         // (blocks, slots, 8): the same
  std::int16_t* half_sums;   // (blocks, slots, 16): of the half groups' values; or null
  int slots;
};

// The numbers besides the codes of one row of quantised weights, as far as its format has them
// (formats/scales.h). f16 are bits. int8: w = scale * q; int4: w = scale * q + minimum.
struct RowNumbers {
  const std::uint16_t* scales;       // f16: of each group, or of each block of 8 groups
  const std::uint16_t* minimums;     // f16: as scales
  const std::int8_t* sub_scales;     // of each group, or of each half
  const std::uint8_t* sub_minimums;  // as sub_scales
  const float* f32_scales;           // of each group
};

// Sixteen rows of a weight matrix W (n, k) to be packed into one tile. Null rows pack as zeros (the
// ragged end of n). values: f32 -> const float* (k); bf16 -> const uint16_t* (k); quantised ones ->
// const uint8_t* (k), one code a byte. k is a multiple of the format's block if that is longer than
// a group.
struct TileSource {
  const void* values[kTileColumns];
  RowNumbers numbers[kTileColumns];  // quantised ones
  int k;
};

// y = x W^T for the tiles [first_tile, first_tile + n_tiles) of a packed W (n_columns, k).
struct MatmulArgs {
  const void* tiles;  // the whole packed matrix, 64-byte aligned
  int first_tile;
  int n_tiles;
  int n_columns;  // outputs of the whole matrix: the last tile may be ragged
  int k;          // at least 1
  int n_rows;
  // f32 and bf16 weights read x. Quantised ones read the result of quantize_row, and bf16 ones that
  // of round_row if the table has it.
  const float* x;  // (n_rows, k), rows x_stride apart
  std::size_t x_stride;
  int slots;                           // rows of the following arrays: at least row_slots(n_rows)
  const std::int8_t* quantized;        // (groups, slots, 32), zero past k
  const float* quantized_scales;       // (groups, slots)
  const std::int32_t* quantized_sums;  // (groups, slots)
  const float* scaled_sums;            // (groups, slots)
  const std::int8_t* block_values;     // from quantize_blocks: (blocks, 4, slots, 64)
  const float* block_scales;           // (blocks, slots)
  const std::int16_t* group_sums;      // (blocks, slots, 8)
  const float* float_sums;             // (blocks, slots, 8)
  const std::int16_t* half_sums;       // (blocks, slots, 16), if weights read block_halves
  const std::uint16_t* rounded;        // (groups, slots, 32) bf16, zero past k
  float* y;              // (n_rows, n_columns), rows y_stride apart; only the tiles' columns
  std::size_t y_stride;  // below n_columns are written
};

// The state of an online softmax over some positions.
struct AttendState {
  float highest;  // score
  float total;    // of the weights, e^(score - highest)
};

// One token's part in an attention: it reads the keys and values at positions 0 to n_keys - 1,
// which are in slots of the cache. Slots of a draft tree's node may be anywhere; the results have
// the bits of those after commitment.
struct AttendRow {
  const float* queries;  // (n_queries, head_dim), rows query_stride apart, after RoPE
  float* out;            // (n_queries, value_dim()), rows out_stride apart: of each query, over the
                         // split's positions, weights times values, added up
  AttendState* states;   // (n_queries), out
  int n_keys;            // more than there are before the split
  int first_key;         // keys before it have weight 0 and are not read; below n_keys
  int n_contiguous;      // positions below it, at most n_keys, are slots of the same number
  const int* slots;      // (n_keys - n_contiguous): the slots of the others
  // (n_queries), rows bias_stride apart: added to the query's score of the key at that position;
  // null: no bias. Given for all rows of a call or for none.
  const float* bias = nullptr;
};

// Attention of the query heads that share one key-value head, for several tokens of one sequence,
// over the positions of one split. Whole chunks that all of them have in place are read once.
struct AttendArgs {
  const AttendRow* rows;  // (n_rows)
  int n_rows;             // at least 1, at most kMaxAttendRows
  int n_queries;
  std::size_t query_stride;
  std::size_t out_stride;
  int head_dim;
  int split;                    // positions kSplitKeys * split and on
  float scale;                  // usually 1 / sqrt(head_dim)
  float softcap = 0;            // scores become softcap * tanh(score / softcap); 0: no cap
  std::size_t bias_stride = 0;  // of AttendRow::bias, which is added before the cap
  const void* const* chunks;  // the address of each kChunkKeys slots: as many as the longest row's
                              // positions take
  std::size_t keys_at;        // bytes from there to the head's block of keys (kv_layout.h)
  std::size_t values_at;      // and to that of values
  void* scratch;  // for two such blocks, on a cache line, the caller's own; null where every row
                  // has all its keys in place and values of their own
  // Above 0: the first values_in_keys elements of a key are also its value, rounded as the key is
  // (a key of int8 has one scale for both). There are no blocks of values then, and values_at is
  // not read.
  int values_in_keys = 0;

  constexpr int value_dim() const { return values_in_keys > 0 ? values_in_keys : head_dim; }
};

// One token of a gated delta rule (Yang, Kautz and Hatamizadeh 2024, arXiv 2412.06464, equation 10)
// in columns of the state S (key_dim, n) of one head:
//
//   S' = decay * S;  d = beta * (value - S'^T key);  to = S' + key d^T;  out = to^T query
//
// S' is rounded before it is read. The sums of each column are in the order of the key's elements,
// each step one fused multiply-add from 0 on, so columns are independent.
//
// Or one of Mamba-2 (Dao and Gu 2024, arXiv 2405.21060, equation 16), with the key B, the query C,
// the value x and beta the step length: the same with d = beta * value.
struct DeltaStep {
  const float* from;  // S, rows from_stride apart
  std::size_t from_stride;
  float* to;  // the same; may be `from`, with the same stride
  std::size_t to_stride;
  const float* key;    // (key_dim)
  const float* value;  // (n)
  float beta;
  float decay;
  const float* query;  // (key_dim); null: no out
  float* out;          // (n)
  int key_dim;
  int n;
};

// Arguments of the softmax over logits.
struct SoftmaxArgs {
  const float* logits;  // (n)
  int n;
  float largest;            // of the whole row, finite
  double temperature;       // above 0
  double* weights;          // (n), out
  std::uint16_t* buckets;   // (n), out: -x * buckets_per_unit rounded down, at most last_bucket,
  double buckets_per_unit;  // and last_bucket for NaN; null: not requested
  int last_bucket;          // below 2^16
};

// A table's functions for one kind of weights.
struct WeightFormat {
  ActivationForm reads;
  // Bytes of a tile, a multiple of 64. Tiles of a matrix are contiguous.
  std::size_t (*tile_bytes)(int k);
  void (*pack_tile)(const TileSource& source, void* tile);
  void (*matmul)(const MatmulArgs& args);
};

struct KernelTable {
  const char* name;  // "scalar", "avx2", "avx512", "amx", "neon"

  WeightFormat formats[kWeightKinds];
  constexpr const WeightFormat& format(WeightKind kind) const {
    return formats[static_cast<int>(kind)];
  }

  // x (k) -> its values (zero past k), scales, sums and scaled sums. Per group: largest = max|x|;
  // scale = largest / 127; q = round-half-even(x * (127 / largest)), in -127..127; all zero (scale
  // 0) when largest is 0 or 127 / largest overflows. A group with an infinity or a NaN gets zeros
  // and the scale NaN, so that its products are NaN.
  void (*quantize_row)(const float* x, int k, const QuantizedRow& out);

  // The same with a scale for each block; k is a multiple of kBlock. Per block: largest = max|x|;
  // scale = largest / 127; q, zeros and NaN as above.
  void (*quantize_blocks)(const float* x, int k, const QuantizedBlocks& out);

  // x (k) -> bf16 (to nearest even), (groups, slots, 32) as above, zero past k. Null if products
  // with bf16 weights read x itself.
  void (*round_row)(const float* x, int k, std::uint16_t* out, int slots);

  // y[i] = weight[i] * (x[i] * (1 / sqrt(mean(x^2) + epsilon))). y may be x.
  void (*rms_norm)(const float* x, const float* weight, int n, float epsilon, float* y);

  // y[i] = weight[i] * (c[i] * (1 / sqrt(mean(c^2) + epsilon))) + bias[i], rounded once at the sum,
  // c = x - mean(x). bias may be null: zeros. y may be x.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, int n, float epsilon,
                     float* y);

  // Rotates the pairs (x[i], x[i + half]), i < half, by the angle with the given cosine and sine
  // (half each); elements from 2 * half on are unchanged. In place.
  void (*apply_rope)(float* x, const float* cosines, const float* sines, int half);

  // out[i] = gate[i] / (1 + exp(-gate[i])) * up[i]. out may be gate or up.
  void (*silu_multiply)(const float* gate, const float* up, int n, float* out);

  // out[i] = g / (1 + exp(-1.702 g)) * (u + 1) with g = min(gate[i], limit) and u = up[i] clamped
  // to -limit..limit, limit > 0 (gpt-oss, 2025). out may be gate.
  void (*clamped_swish_multiply)(const float* gate, const float* up, int n, float limit,
                                 float* out);

  // weights[i] = e^x, or 0 if that is NaN, with x = (logits[i] - largest) / temperature, in double:
  // portable_exp of base/elementary.h, bit for bit. Returns the number of zeros.
  int (*softmax_weights)(const SoftmaxArgs& args);

  // values[i] = log(values[i]) for normal values above 0, in place: portable_log, bit for bit.
  void (*logarithms)(double* values, int n);

  // out (2 n_blocks): for each block of Philox4x32-10 with the key `seed` and the counter position
  // (two words), first + i, purpose: the two uniform numbers between 0 and 1 of
  // sampling/counter_chance.h.
  void (*philox_uniforms)(std::uint64_t seed, std::int64_t position, std::uint32_t first,
                          std::uint32_t purpose, int n_blocks, double* out);

  // out[i] = gate[i] / (1 + exp(-2 u)) * up[i], u = sqrt(2 / pi) (gate[i] + 0.044715 gate[i]^3):
  // GELU by tanh, since (1 + tanh u) / 2 = 1 / (1 + exp(-2 u)). out may be gate.
  void (*gelu_multiply)(const float* gate, const float* up, int n, float* out);

  // out[i] = gate[i] Phi(gate[i]) * up[i], Phi(x) = (1 + erf(x / sqrt(2))) / 2: GELU by erf. out
  // may be gate.
  void (*gelu_erf_multiply)(const float* gate, const float* up, int n, float* out);
  // x[i] = cap * tanh(x[i] / cap), for a cap above 0 with a finite inverse.
  void (*soft_cap)(float* x, int n, float cap);

  // out[i] = 1 / (1 + exp(-gate[i])) * up[i]. out may be up.
  void (*sigmoid_multiply)(const float* gate, const float* up, int n, float* out);

  void (*delta_step)(const DeltaStep& step);
  void (*mamba_step)(const DeltaStep& step);

  // x[i] += y[i].
  void (*add)(float* x, const float* y, int n);

  // Stores one head's keys (or values) of a token, x (head_dim), at the token's place in a block
  // (kv_layout.h). bf16: to nearest even, as base/float16.h. int8: bytes and a scale, for heads of
  // at most kMaxRoundedHeadDim, as quantize_row does with a group: largest = max|x|, scale =
  // largest / 127, q = round-half-even(x * (127 / largest)), all zero when largest is 0 or 127 /
  // largest overflows; an infinity or a NaN makes the bytes zero and the scale NaN.
  void (*store_key[kKvKinds])(const float* x, int head_dim, std::byte* block, int token);
  void (*store_value[kKvKinds])(const float* x, int head_dim, std::byte* block, int token);

  // The part of softmax(scale * queries keys^T) values that a split's positions give, row by row;
  // online over chunks of kChunkKeys, whose sums of values are added chunk by chunk.
  //
  // f32, bf16: the products of a score are added in the order of dims, and those of a chunk's sum
  // in the order of tokens. Each addition is one fused multiply-add. int8, heads of at most
  // kMaxRoundedHeadDim: a query, and a chunk's weights times the scales of their values, are
  // rounded to integers. The largest in size becomes 127 * 128 (all are zero when 127 * 128 /
  // largest overflows). Scores and a chunk's sums are exact integers, rounded to float once and
  // multiplied by the scales.
  //
  // Scores that overflow to -infinity have weight 0; a row without other scores becomes NaN. With a
  // soft cap such scores become -softcap, with a weight above 0.
  void (*attend[kKvKinds])(const AttendArgs& args);

  // The same for bf16, for passes with bf16 weights and heads of at most kMaxRoundedHeadDim, with
  // bf16 products: queries are rounded to bf16, and so are weights, before they are summed. Null if
  // there is no round_row.
  void (*attend_bf16_pairs)(const AttendArgs& args);

  // For one query, adds the result of further positions, further_sums and further, to that of
  // earlier ones, sums (head_dim) and state; both are rescaled to the higher of the two highest
  // scores.
  void (*merge_split)(const float* further_sums, const AttendState& further, int head_dim,
                      float* sums, AttendState* state);
  // Turns sums (head_dim) into the attention.
  void (*finish_attention)(const AttendState& state, int head_dim, float* sums);
};

}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_TABLE_H_
