// The kernels of one instruction set, as a table of plain functions over raw pointers.
//
// Every algorithm is written once (algorithms.h) over a vector of 16 floats and compiled once per
// instruction set; the tables differ in speed only. What each slot promises, on every table:
//
//   * Batch invariance. A row of output depends on its own row of input and nothing else: not on
//     n_rows, not on which tiles or rows the call covers.
//   * Same bits on every table, for every slot here (a NaN is a NaN, whatever its payload): integer
//     sums are exact; float reductions use 16 virtual lanes (element i belongs to lane i mod 16)
//     and one fixed tree (lane j takes in lane j+8, then j+4, j+2, j+1); matrix products with f32
//     and bf16 weights, and attention, add the products of an output one after the other, each with
//     one fused multiply-add. Quantised ones go group by group, or block by block of 256, with the
//     exact integer dot: sum = fma(dot, scale * x_scale, sum), then for int4 sum =
//     fma(x_sum * x_scale, minimum, sum); formats/scales.h has those of the other formats.
//   * One exception: a table with round_row has its own arithmetic for bf16 weights and, with them,
//     for keys and values in bf16 (that of instructions that add products in pairs),
//     batch-invariant like all else.
//   * No allocation, no exceptions, no globals: any thread may call any slot. The float environment
//     must be the default (round to nearest, no flush to zero): tensor/team.h sees to it.
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

// Attention goes over positions split by split, each by itself, and merges what comes of them in
// order; so threads can share a head's keys ("split-KV", Dao and others 2023, "Flash-Decoding for
// long-context inference"). Splits begin at fixed positions, as chunks do. What one costs
// by itself is 0 to 4 % of attending to 1024 keys (docs/performance.md).
inline constexpr int kSplitKeys = 1024;
static_assert(kSplitKeys % kChunkKeys == 0);
constexpr int splits_of(int n_keys) { return (n_keys + kSplitKeys - 1) / kSplitKeys; }

inline constexpr int kMostAttendRows = 16;    // tokens of one call of attend
inline constexpr int kMostAttendQueries = 8;  // query heads that it works on together

// How a packed matrix holds its weights: plain floats, what floats are rounded to on request (int8,
// int4), and GGUF's quantised blocks as they are stored (formats/block_formats.h).
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

// What products with some weights read of their inputs. int8: a scale for each group. blocks: int8
// with a scale for each block of 256, and the sums of groups; block_halves: of half groups, too.
enum class ActivationForm { f32, int8, blocks, block_halves, bf16 };
// int8: of each head of a token's keys, and of its values, n bytes and a scale.
enum class KvKind : int { f32, bf16, int8 };
inline constexpr int kKvKinds = 3;
// Of heads whose numbers are rounded first: int8, stored and read, and attend_bf16_pairs. What
// DeepSeek's latent attention reads is as wide: a latent of 512 and 64 elements that RoPE turned.
inline constexpr int kMostRoundedHeadDim = 576;

constexpr int groups_of(int k) { return (k + kGroup - 1) / kGroup; }

// Elements along K of the formats that have scales of scales (formats/scales.h). Their matrices
// have whole blocks.
inline constexpr int kBlock = 256;
inline constexpr int kBlockGroups = kBlock / kGroup;
constexpr int blocks_of(int k) { return k / kBlock; }
// Elements of a row that lie side by side among inputs in blocks: what matrix units take at a time.
inline constexpr int kBlockRun = 64;

// Prepared inputs lie group by group, the rows of a group side by side, with room for so many rows:
// the matrix units take up to 16 rows at a time, as many tiles as that makes, all of one height, a
// multiple of 4. What stands in the rows past n_rows is read and has no effect.
constexpr int row_tiles(int n_rows) { return (n_rows + 15) / 16; }
constexpr int row_tile_height(int n_rows) {
  const int tiles = row_tiles(n_rows);
  return tiles == 0 ? 0 : ((n_rows + tiles - 1) / tiles + 3) / 4 * 4;
}
constexpr int row_slots(int n_rows) { return row_tiles(n_rows) * row_tile_height(n_rows); }

// One row's place among the prepared inputs of quantised weights, where its group 0 stands;
// group g is g * slots rows further on.
struct QuantizedRow {
  std::int8_t* values;  // (groups, slots, 32)
  float* scales;        // (groups, slots)
  std::int32_t* sums;   // (groups, slots): of the group's values
  float* scaled_sums;   // (groups, slots): sum * scale
  int slots;
};

// The same of weights in blocks, where its block 0 stands.
struct QuantizedBlocks {
  std::int8_t* values;       // (blocks, 4, slots, 64)
  float* scales;             // (blocks, slots)
  std::int16_t* group_sums;  // (blocks, slots, 8): of the groups' values
  float* float_sums;         // (blocks, slots, 8): the same
  std::int16_t* half_sums;   // (blocks, slots, 16): of the half groups' values; or null
  int slots;
};

// The numbers beside the codes of one row of quantised weights, as far as its format has them
// (formats/scales.h). f16 are bits. Of int8 w = scale * q, of int4 w = scale * q + minimum.
struct RowNumbers {
  const std::uint16_t* scales;       // f16: of each group, or of each block of 8 groups
  const std::uint16_t* minimums;     // f16: likewise
  const std::int8_t* sub_scales;     // of each group, or of each half
  const std::uint8_t* sub_minimums;  // likewise
  const float* f32_scales;           // of each group
};

// Sixteen rows of a weight matrix W (n, k), on their way into one packed tile. Null rows pack as
// zeros (the ragged end of n). values: f32 -> const float* (k); bf16 -> const uint16_t* (k);
// quantised ones -> const uint8_t* (k), one code a byte. k is a multiple of the format's block
// where that is longer than a group.
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
  // f32 and bf16 weights read x; quantised ones read what quantize_row made of it, bf16 what
  // round_row made of it where the table has one.
  const float* x;  // (n_rows, k), rows x_stride apart
  std::size_t x_stride;
  int slots;                           // rows that the following have room for: at least
                                       // row_slots(n_rows)
  const std::int8_t* quantized;        // (groups, slots, 32), zero past k
  const float* quantized_scales;       // (groups, slots)
  const std::int32_t* quantized_sums;  // (groups, slots)
  const float* scaled_sums;            // (groups, slots)
  const std::int8_t* block_values;     // what quantize_blocks made: (blocks, 4, slots, 64)
  const float* block_scales;           // (blocks, slots)
  const std::int16_t* group_sums;      // (blocks, slots, 8)
  const float* float_sums;             // (blocks, slots, 8)
  const std::int16_t* half_sums;       // (blocks, slots, 16), where weights read block_halves
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
// which stand in slots of the cache. Those of a draft tree's node may stand anywhere; they are read
// exactly as after their commitment.
struct AttendRow {
  const float* queries;  // (n_queries, head_dim), rows query_stride apart, after RoPE
  float* out;            // (n_queries, value_dim()), rows out_stride apart: of each query, over the
                         // split's positions, weights times values, added up
  AttendState* states;   // (n_queries), out
  int n_keys;            // more than stand before the split
  int first_key;         // keys before it weigh nothing and are not read; below n_keys
  int n_in_place;        // the first so many positions, at most n_keys, are slots of that number
  const int* slots;      // (n_keys - n_in_place): where the others stand
  // (n_queries), rows bias_stride apart: what is added to the query's score of the key at that
  // position; null: nothing. Of all rows of a call or of none.
  const float* bias = nullptr;
};

// Attention of the query heads that share one key-value head, for several tokens of one sequence,
// over the positions of one split: whole chunks that all of them have in place are read once.
struct AttendArgs {
  const AttendRow* rows;  // (n_rows)
  int n_rows;             // at least 1, at most kMostAttendRows
  int n_queries;
  std::size_t query_stride;
  std::size_t out_stride;
  int head_dim;
  int split;                    // positions kSplitKeys * split and on
  float scale;                  // 1 / sqrt(head_dim) as a rule
  float softcap = 0;            // scores become softcap * tanh(score / softcap); 0: they stay
  std::size_t bias_stride = 0;  // AttendRow::bias, which is added before that
  const void* const* chunks;  // of each kChunkKeys slots, an address: as many as the longest row's
                              // positions take, wherever they stand
  std::size_t keys_at;        // bytes from there to the head's block of keys (kv_layout.h)
  std::size_t values_at;      // and to that of values
  void* room;  // for two such blocks, on a cache line, the caller's own; null where every row has
               // all its keys in place and values of their own
  // Above 0: a key's first so many elements are its value, too, rounded as the key is (a key of
  // int8 has one scale for both). There are no blocks of values then, and values_at is not read.
  int values_in_keys = 0;

  constexpr int value_dim() const { return values_in_keys > 0 ? values_in_keys : head_dim; }
};

// One token of a gated delta rule (Yang, Kautz and Hatamizadeh 2024, arXiv 2412.06464, equation 10)
// in columns of the state S (key_dim, n) of one head:
//
//   S' = decay * S;  d = beta * (value - S'^T key);  to = S' + key d^T;  out = to^T query
//
// S' is rounded before it is read. Of each column the sums are in the order of the key's elements,
// each step one fused multiply-add from 0 on, so that columns do not depend on one another.
//
// Or one of Mamba-2 (Dao and Gu 2024, arXiv 2405.21060, equation 16), where the key is B, the query
// C, the value x and beta the length of the step: the same with d = beta * value.
struct DeltaStep {
  const float* from;  // S, rows from_stride apart
  std::size_t from_stride;
  float* to;  // likewise; it may be `from`, with the same stride
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

// Logits on their way to a distribution.
struct SoftmaxArgs {
  const float* logits;  // (n)
  int n;
  float largest;            // of the whole row, finite
  double temperature;       // above 0
  double* weights;          // (n), out
  std::uint16_t* buckets;   // (n), out: -x * buckets_per_unit rounded down, last_bucket at most and
  double buckets_per_unit;  // for NaN; or null
  int last_bucket;          // below 2^16
};

// What a table makes of one kind of weights.
struct WeightFormat {
  ActivationForm reads;
  // Tiles of a matrix follow one another, each so many bytes long: a multiple of 64.
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

  // x (k) -> its values (zero past k), scales, sums and scaled sums. Per group:
  // largest = max|x|; scale = largest / 127; q = round-half-even(x * (127 / largest)), in
  // -127..127; all zero (scale 0) when largest is 0 or 127 / largest overflows. A group with an
  // infinity or a NaN gets zeros and the scale NaN, so that its products are NaN.
  void (*quantize_row)(const float* x, int k, const QuantizedRow& out);

  // The same with a scale for each block; k is a multiple of kBlock. Per block: largest = max|x|;
  // scale = largest / 127; q and what is zero or NaN as above.
  void (*quantize_blocks)(const float* x, int k, const QuantizedBlocks& out);

  // x (k) -> bf16 (to nearest even), (groups, slots, 32) as above, zero past k. Null where products
  // with bf16 weights read x itself.
  void (*round_row)(const float* x, int k, std::uint16_t* out, int slots);

  // y[i] = weight[i] * (x[i] * (1 / sqrt(mean(x^2) + epsilon))). y may be x.
  void (*rms_norm)(const float* x, const float* weight, int n, float epsilon, float* y);

  // y[i] = weight[i] * (c[i] * (1 / sqrt(mean(c^2) + epsilon))) + bias[i], rounded once at the sum,
  // c = x - mean(x). bias may be null: zeros. y may be x.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, int n, float epsilon,
                     float* y);

  // Rotates the pairs (x[i], x[i + half]), i < half, by the angle whose cosine and sine are given
  // (half each); elements from 2 * half on stay. In place.
  void (*rotate)(float* x, const float* cosines, const float* sines, int half);

  // out[i] = gate[i] / (1 + exp(-gate[i])) * up[i]. out may be gate or up.
  void (*silu_multiply)(const float* gate, const float* up, int n, float* out);

  // out[i] = g / (1 + exp(-1.702 g)) * (u + 1) of g = min(gate[i], limit) and u = up[i] between
  // -limit and limit, above 0 (gpt-oss, 2025). out may be gate.
  void (*clamped_swish_multiply)(const float* gate, const float* up, int n, float limit,
                                 float* out);

  // weights[i] = e^x, 0 where that is NaN, of x = (logits[i] - largest) / temperature, in double:
  // portable_exp of base/elementary.h, bit by bit. Returns how many are 0.
  int (*softmax_weights)(const SoftmaxArgs& args);

  // values[i] = log(values[i]) of normal values above 0, in place: portable_log, bit by bit.
  void (*logarithms)(double* values, int n);

  // out (2 n_blocks): of each block of Philox4x32-10 whose key is `seed` and whose counter is
  // position (two words), first + i, purpose, the two uniform numbers between 0 and 1 that
  // sampling/counter_chance.h makes of it.
  void (*philox_uniforms)(std::uint64_t seed, std::int64_t position, std::uint32_t first,
                          std::uint32_t purpose, int n_blocks, double* out);

  // out[i] = gate[i] / (1 + exp(-2 u)) * up[i], u = sqrt(2 / pi) (gate[i] + 0.044715 gate[i]^3):
  // GELU by tanh, since (1 + tanh u) / 2 = 1 / (1 + exp(-2 u)). out may be gate.
  void (*gelu_multiply)(const float* gate, const float* up, int n, float* out);

  // out[i] = gate[i] Phi(gate[i]) * up[i], Phi(x) = (1 + erf(x / sqrt(2))) / 2: GELU by erf. out
  // may be gate.
  void (*gelu_erf_multiply)(const float* gate, const float* up, int n, float* out);
  // x[i] = cap * tanh(x[i] / cap), of a cap above 0 with a finite inverse.
  void (*soft_cap)(float* x, int n, float cap);

  // out[i] = 1 / (1 + exp(-gate[i])) * up[i]. out may be up.
  void (*sigmoid_multiply)(const float* gate, const float* up, int n, float* out);

  void (*delta_step)(const DeltaStep& step);
  void (*mamba_step)(const DeltaStep& step);

  // x[i] += y[i].
  void (*add)(float* x, const float* y, int n);

  // One head's keys (or values) of a token, x (head_dim), into the token's place in a block
  // (kv_layout.h). bf16: to nearest even, as base/float16.h does. int8: bytes and a scale, of heads
  // of at most kMostRoundedHeadDim, as quantize_row does with a group: largest = max|x|, scale =
  // largest / 127, q = round-half-even(x * (127 / largest)), all zero when largest is 0 or 127 /
  // largest overflows; an infinity or a NaN makes the bytes zero and the scale NaN.
  void (*store_key[kKvKinds])(const float* x, int head_dim, std::byte* block, int token);
  void (*store_value[kKvKinds])(const float* x, int head_dim, std::byte* block, int token);

  // What softmax(scale * queries keys^T) values takes of a split's positions, row by row; online
  // over chunks of kChunkKeys, whose sums of values are added up chunk by chunk. f32, bf16: the
  // products of a score are added in the order of dims, those of a chunk's sum in that of tokens,
  // each with one fused multiply-add. int8, heads of at most kMostRoundedHeadDim: a query, and a
  // chunk's weights times the scales of their values, are rounded to integers, the largest in size
  // becoming 127 * 128 (all zero when 127 * 128 / largest overflows); scores and a chunk's sums are
  // exact integers, rounded to float once and multiplied by the scales. Scores that
  // overflow to -infinity weigh nothing; a row that has no others becomes NaN. With a soft cap they
  // are -softcap, and weigh.
  void (*attend[kKvKinds])(const AttendArgs& args);

  // The same of bf16, for passes whose weights are bf16 and heads of at most kMostRoundedHeadDim,
  // by the products of those: queries are rounded to bf16, and so are weights, before they are
  // added up. Null where there is no round_row.
  void (*attend_bf16_pairs)(const AttendArgs& args);

  // Of one query, what the positions of further_sums and further took is added to what those
  // before, sums (head_dim) and state, did; both to the higher of their highest scores.
  void (*merge_split)(const float* further_sums, const AttendState& further, int head_dim,
                      float* sums, AttendState* state);
  // sums (head_dim) becomes the attention.
  void (*finish_attention)(const AttendState& state, int head_dim, float* sums);
};

}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_TABLE_H_
