// Every kernel, once, over a vector type V of 16 floats and a type Dots of integer dot products.
// Each instruction set's file defines its V and Dots and calls make_table<V, Dots>(name).
//
// V offers: zero, broadcast(float), load(const float*), load(const uint16_t* bf16),
// load_first and store_first of n < 16 elements (zeros behind what is loaded),
// load_f16(const uint16_t*), store(float*), store_int8(int8_t*) of integers in -128..127; + - * /;
// fma(a, b, c) = a * b + c rounded once; max(a, b) = a > b ? a : b and min(a, b) = a < b ? a : b
// (so a NaN in b passes, as in the x86 instructions); absolute; shift_left_23 of the bits;
// reduce_add by the tree of table.h, reduce_add_each (of
// sixteen V at once: lane i is the i-th's sum) and reduce_max; kAccumulators, how many V the
// registers hold beside the operands of a product, and kMaxRows <= kAccumulators.
//
// Dots offers: kMaxRows and, for R rows at a time, the exact dot products of one group's 16 outputs
// with each row's 32 quantised inputs, as floats (below 2^24, so exact): int8 and int4.
//
// Everything here has internal linkage, and no function of the standard library is used that could
// be emitted out of line: a copy compiled with AVX flags must never be linked into code that runs
// everywhere.
#ifndef OUTRIDER_KERNELS_ALGORITHMS_H_
#define OUTRIDER_KERNELS_ALGORITHMS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/layout.h"
#include "kernels/table.h"
#include "kernels/tables.h"

namespace outrider::kernels {
namespace {

// --- Vectors -----------------------------------------------------------------------------------

// Elements [at, at + 16) of n, however many of them there are.
template <class V, class Element>
V load_at(const Element* from, int at, int n) {
  return at + kLanes <= n ? V::load(from + at) : V::load_first(from + at, n - at);
}

template <class V>
void store_at(V value, float* to, int at, int n) {
  if (at + kLanes <= n) {
    value.store(to + at);
  } else {
    value.store_first(to + at, n - at);
  }
}

// 1.5 * 2^23: added to |x| < 2^22 it leaves no bit for a fraction, so the sum is rounded to the
// nearest integer, ties to even, which then stands in the low mantissa bits.
constexpr float kRoundingShift = 0x1.8p23F;

template <class V>
V round_even(V x) {
  const V shift = V::broadcast(kRoundingShift);
  return (x + shift) - shift;
}

// 2^n for integral n in -126..127: n plus the exponent's bias, moved to where the exponent stands.
template <class V>
V power_of_two(V n) {
  return shift_left_23(n + V::broadcast(kRoundingShift + 127.0F));
}

// e^x = 2^n * e^r with n = round(x / ln 2) and |r| <= ln(2) / 2. e^r is its Taylor polynomial of
// degree 7, whose remainder r^8 / 8! is below 6e-9, a tenth of the float rounding at 1. Right for
// all x: subnormal results are rounded once, -inf gives 0, large x infinity, NaN stays NaN.
template <class V>
V exponential(V x) {
  x = max(V::broadcast(-104.0F), x);                         // e^-104 < 2^-150, which rounds to 0
  x = min(V::broadcast(89.0F), x);                           // e^89 > 2^128, which is infinity
  const V n = round_even(x * V::broadcast(0x1.715476p+0F));  // 1 / ln 2
  // ln 2 in two parts; the first has 16 bits, so that its product with n is exact.
  V r = fma(n, V::broadcast(-0x1.62e4p-1F), x);
  r = fma(n, V::broadcast(-0x1.7f7d1cp-20F), r);
  V e = V::broadcast(1.0F / 5040);
  e = fma(e, r, V::broadcast(1.0F / 720));
  e = fma(e, r, V::broadcast(1.0F / 120));
  e = fma(e, r, V::broadcast(1.0F / 24));
  e = fma(e, r, V::broadcast(1.0F / 6));
  e = fma(e, r, V::broadcast(0.5F));
  e = fma(e, r, V::broadcast(1.0F));
  e = fma(e, r, V::broadcast(1.0F));
  // n goes down to -150 and up to 128, past what one exponent holds: two exact powers, of which
  // only the second multiplication can round.
  const V half = round_even(n * V::broadcast(0.5F));
  return e * power_of_two(half) * power_of_two(n - half);
}

// --- Matrix products ---------------------------------------------------------------------------

// How far ahead of the loads the weights are called for: about 100 ns of latency at 20 GB/s a
// thread are 2 KB, and as much again for its spread. (A page boundary stops the hardware's own
// prefetcher.)
constexpr std::size_t kPrefetchBytes = 4608;

inline void prefetch_lines(const std::byte* from, std::size_t n_bytes) {
  for (std::size_t at = 0; at < n_bytes; at += kLineBytes) {
    __builtin_prefetch(from + kPrefetchBytes + at);
  }
}

// Columns of the whole matrix that tile has, 16 but for the last.
inline int tile_columns(const MatmulArgs& args, int tile) {
  const int left = args.n_columns - tile * kTileColumns;
  return left < kTileColumns ? left : kTileColumns;
}

template <class V>
void store_tile(V value, const MatmulArgs& args, int row, int tile) {
  float* y = args.y + static_cast<std::size_t>(row) * args.y_stride;
  store_at(value, y, tile * kTileColumns, tile * kTileColumns + tile_columns(args, tile));
}

// Calls step<R>(row) over all rows, R = Most while there are so many left, then the exact rest.
template <int Most, class Step>
void for_row_blocks(int n_rows, const Step& step, int row = 0) {
  for (; n_rows - row >= Most; row += Most) step.template run<Most>(row);
  if constexpr (Most > 1) {
    if (row < n_rows) for_row_blocks<Most - 1>(n_rows, step, row);
  }
}

// R rows times T adjacent tiles of f32 (Element float) or bf16 (Element uint16_t) weights.
template <class V, class Element, int R, int T>
void multiply_plain(const MatmulArgs& args, int tile, int row) {
  const std::size_t tile_bytes =
      packed_tile_bytes(sizeof(Element) == 4 ? WeightKind::f32 : WeightKind::bf16, args.k);
  const std::byte* weights = static_cast<const std::byte*>(args.tiles) + tile * tile_bytes;
  const float* x = args.x + static_cast<std::size_t>(row) * args.x_stride;
  V sums[R][T];
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) sums[r][t] = V::zero();
  }
  for (int i = 0; i < args.k; ++i) {
    V w[T];
    for (int t = 0; t < T; ++t) {
      const std::byte* at = weights + t * tile_bytes + i * (sizeof(Element) * kTileColumns);
      __builtin_prefetch(at + kPrefetchBytes);
      w[t] = V::load(reinterpret_cast<const Element*>(at));
    }
    for (int r = 0; r < R; ++r) {
      const V input = V::broadcast(x[static_cast<std::size_t>(r) * args.x_stride + i]);
      for (int t = 0; t < T; ++t) sums[r][t] = fma(input, w[t], sums[r][t]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) store_tile(sums[r][t], args, row + r, tile + t);
  }
}

template <class V, class Element, bool TwoTiles>
struct PlainStep {
  const MatmulArgs& args;
  int tile;
  template <int R>
  void run(int row) const {
    if constexpr (!TwoTiles) {
      multiply_plain<V, Element, R, 1>(args, tile, row);
    } else if constexpr (2 * R <= V::kAccumulators) {
      multiply_plain<V, Element, R, 2>(args, tile, row);
    } else {
      multiply_plain<V, Element, R, 1>(args, tile, row);
      multiply_plain<V, Element, R, 1>(args, tile + 1, row);
    }
  }
};

// Two tiles at a time: with one row, a single chain of dependent additions would be slower than the
// memory.
template <class V, class Element>
void matmul_plain(const MatmulArgs& args) {
  const int end = args.first_tile + args.n_tiles;
  int tile = args.first_tile;
  for (; tile + 1 < end; tile += 2) {
    for_row_blocks<V::kMaxRows>(args.n_rows, PlainStep<V, Element, true>{args, tile});
  }
  if (tile < end) {
    for_row_blocks<V::kMaxRows>(args.n_rows, PlainStep<V, Element, false>{args, tile});
  }
}

// The quantised inputs of R adjacent rows at one group.
struct GroupInputs {
  const std::int8_t* quantized;  // (R, 32)
  const std::int32_t* sums;      // (R)

  const std::int8_t* row(int r) const { return quantized + r * kGroup; }
  std::int32_t sum(int r) const { return sums[r]; }
};

// R rows times T adjacent tiles of int8 or int4 weights.
template <class V, class Dots, WeightKind kKind, int R, int T>
void multiply_quantized(const MatmulArgs& args, int tile, int row) {
  constexpr bool kInt8 = kKind == WeightKind::int8;
  const std::size_t tile_bytes = packed_tile_bytes(kKind, args.k);
  const std::byte* weights = static_cast<const std::byte*>(args.tiles) + tile * tile_bytes;
  const int n_groups = group_count(args.k);
  const std::int8_t* quantized = args.quantized + std::size_t{kGroup} * row;
  V sums[R][T];
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) sums[r][t] = V::zero();
  }
  for (int group = 0; group < n_groups; ++group) {
    const std::size_t first = static_cast<std::size_t>(group) * args.slots;
    const GroupInputs inputs{quantized + first * kGroup, args.quantized_sums + first + row};
    const float* input_scales = args.quantized_scales + first + row;
    const float* scaled_sums = args.scaled_sums + first + row;
    const std::size_t weights_at = kInt8 ? int8_weights_at(group) : int4_weights_at(group);
    const std::size_t scales_at = kInt8 ? int8_scales_at(group) : int4_scales_at(group);
    for (int t = 0; t < T; ++t) {
      const std::byte* at = weights + t * tile_bytes;
      prefetch_lines(at + weights_at, kInt8 ? kInt8PairBytes / 2 : kInt4GroupBytes);
      V dots[R];
      if constexpr (kInt8) {
        Dots::template int8<R>(at + weights_at, inputs, dots);
      } else {
        Dots::template int4<R>(at + weights_at, inputs, dots);
      }
      const V scale = V::load_f16(reinterpret_cast<const std::uint16_t*>(at + scales_at));
      for (int r = 0; r < R; ++r) {
        sums[r][t] = fma(dots[r], scale * V::broadcast(input_scales[r]), sums[r][t]);
      }
      if constexpr (!kInt8) {
        const V minimum =
            V::load_f16(reinterpret_cast<const std::uint16_t*>(at + int4_minimums_at(group)));
        for (int r = 0; r < R; ++r) {
          sums[r][t] = fma(V::broadcast(scaled_sums[r]), minimum, sums[r][t]);
        }
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) store_tile(sums[r][t], args, row + r, tile + t);
  }
}

// Tiles that few rows take at a time, each a stream of weights of its own: the hardware's
// prefetcher follows every one by itself and draws more from the memory than from one (one row over
// four streams: 1.35 times the bytes a second).
constexpr int kMostStreams = 4;

// kTiles adjacent tiles, as many of them together as the registers hold sums for.
template <class V, class Dots, WeightKind kKind, int kTiles>
struct QuantizedStep {
  const MatmulArgs& args;
  int tile;
  template <int R>
  void run(int row) const {
    constexpr int kRoom = Dots::kMaxRows / R;
    constexpr int kTogether = kRoom >= kTiles ? kTiles : kRoom >= 2 && kTiles % 2 == 0 ? 2 : 1;
    for (int t = 0; t < kTiles; t += kTogether) {
      multiply_quantized<V, Dots, kKind, R, kTogether>(args, tile + t, row);
    }
  }
};

template <class V, class Dots, WeightKind kKind>
void matmul_quantized(const MatmulArgs& args) {
  const int end = args.first_tile + args.n_tiles;
  int tile = args.first_tile;
  for (; tile + kMostStreams <= end; tile += kMostStreams) {
    for_row_blocks<Dots::kMaxRows>(args.n_rows,
                                   QuantizedStep<V, Dots, kKind, kMostStreams>{args, tile});
  }
  for (; tile < end; ++tile) {
    for_row_blocks<Dots::kMaxRows>(args.n_rows, QuantizedStep<V, Dots, kKind, 1>{args, tile});
  }
}

// --- Rows --------------------------------------------------------------------------------------

template <class V>
void quantize_row(const float* x, int k, const QuantizedRow& out) {
  for (int group = 0; group < group_count(k); ++group) {
    const int at = group * kGroup;
    const int n = k - at < kGroup ? k - at : kGroup;
    const V low = load_at<V>(x + at, 0, n);
    const V high = n > kLanes ? load_at<V>(x + at, kLanes, n) : V::zero();
    const float largest = reduce_max(max(absolute(low), absolute(high)));
    // 0, but NaN where an element is infinite or NaN. Such a group gets the scale NaN, so that its
    // products show what went in.
    const float taint = reduce_add(low * V::zero() + high * V::zero());
    const float inverse = 127.0F / largest;
    const std::size_t place = static_cast<std::size_t>(group) * out.slots;
    std::int8_t* q = out.values + place * kGroup;
    const bool zero = inverse > 3.402823466e38F;
    if (zero || taint != taint) {
      for (int i = 0; i < kGroup; ++i) q[i] = 0;
      out.scales[place] = taint != taint ? taint : 0.0F;
      out.sums[place] = 0;
      out.scaled_sums[place] = out.scales[place];
      continue;
    }
    const V q_low = round_even(low * V::broadcast(inverse));
    const V q_high = round_even(high * V::broadcast(inverse));
    q_low.store_int8(q);
    q_high.store_int8(q + kLanes);
    const float scale = largest / 127.0F;
    const float sum = reduce_add(q_low + q_high);  // at most 32 * 127: exact
    out.scales[place] = scale;
    out.sums[place] = static_cast<std::int32_t>(sum);
    out.scaled_sums[place] = sum * scale;
  }
}

template <class V>
void rms_norm(const float* x, const float* weight, int n, float epsilon, float* y) {
  V squares = V::zero();
  for (int i = 0; i < n; i += kLanes) {
    const V value = load_at<V>(x, i, n);
    squares = fma(value, value, squares);
  }
  const float mean = reduce_add(squares) / static_cast<float>(n);
  const V factor = V::broadcast(1.0F / __builtin_sqrtf(mean + epsilon));
  for (int i = 0; i < n; i += kLanes) {
    store_at(load_at<V>(weight, i, n) * (load_at<V>(x, i, n) * factor), y, i, n);
  }
}

template <class V>
void rotate(float* x, const float* cosines, const float* sines, int half) {
  for (int i = 0; i < half; i += kLanes) {
    const V first = load_at<V>(x, i, half);
    const V second = load_at<V>(x + half, i, half);
    const V cosine = load_at<V>(cosines, i, half);
    const V sine = load_at<V>(sines, i, half);
    store_at(first * cosine - second * sine, x, i, half);
    store_at(second * cosine + first * sine, x + half, i, half);
  }
}

template <class V>
void silu_multiply(const float* gate, const float* up, int n, float* out) {
  const V one = V::broadcast(1.0F);
  for (int i = 0; i < n; i += kLanes) {
    const V value = load_at<V>(gate, i, n);
    const V silu = value / (one + exponential(V::zero() - value));
    store_at(silu * load_at<V>(up, i, n), out, i, n);
  }
}

template <class V>
void add_to(float* x, const float* y, int n) {
  for (int i = 0; i < n; i += kLanes) {
    store_at(load_at<V>(x, i, n) + load_at<V>(y, i, n), x, i, n);
  }
}

// Integer arithmetic that compilers turn into vectors by themselves.
template <class V>
void round_to_bf16(const float* x, int n, std::uint16_t* out) {
  for (int i = 0; i < n; ++i) {
    const auto bits = __builtin_bit_cast(std::uint32_t, x[i]);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t quiet_nan = (bits >> 16) | 0x40U;
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    out[i] = static_cast<std::uint16_t>(is_nan ? quiet_nan : rounded);
  }
}

// --- Attention ---------------------------------------------------------------------------------

// Longer heads are read where they stand instead of being widened once for all who read them.
constexpr int kMostWidenedDim = 256;

// A chunk's keys (or values) as the loops read them: rows[i] is the i-th's elements, the last of n
// repeated up to whole groups of kLanes. 16-bit ones are widened into room first.
template <class V, class Element, class Read>
void read_chunk(const void* const* at, int n, const AttendArgs& args, float* room,
                const Read** rows) {
  const int dim = args.head_dim;
  const int stride = (dim + kLanes - 1) / kLanes * kLanes;
  for (int i = 0; i < n; ++i) {
    const auto* from = static_cast<const Element*>(at[i]) + args.head_offset;
    if constexpr (sizeof(Element) == sizeof(Read)) {
      rows[i] = from;
    } else {
      float* to = room + static_cast<std::size_t>(i) * stride;
      rows[i] = to;
      int d = 0;
      for (; d + kLanes <= dim; d += kLanes) V::load(from + d).store(to + d);
      if (d < dim) V::load_first(from + d, dim - d).store_first(to + d, dim - d);
    }
  }
  for (int i = n; i % kLanes != 0; ++i) rows[i] = rows[n - 1];
}

// The dot products of a query with sixteen keys: each over 16 lanes, added up by the one tree.
template <class V, class Read>
[[gnu::always_inline]] inline V dot_sixteen(const float* query, const Read* const* keys, int dim) {
  V sums[kLanes];
  for (int i = 0; i < kLanes; ++i) sums[i] = V::zero();
  int d = 0;
  for (; d + kLanes <= dim; d += kLanes) {
    const V q = V::load(query + d);
    for (int i = 0; i < kLanes; ++i) sums[i] = fma(q, V::load(keys[i] + d), sums[i]);
  }
  if (d < dim) {
    const V q = V::load_first(query + d, dim - d);
    for (int i = 0; i < kLanes; ++i) {
      sums[i] = fma(q, V::load_first(keys[i] + d, dim - d), sums[i]);
    }
  }
  return reduce_add_each(sums);
}

// sums (Q queries, dim) += weights (Q rows of kChunkKeys) times n values, value after value, for
// kMany vectors of dims from d on: enough side by side that no addition waits for the one before.
template <class V, class Read, int Q, int kMany>
[[gnu::always_inline]] inline void add_values_at(const Read* const* values, int n, int d,
                                                 const float* weights, float* sums,
                                                 std::size_t stride) {
  V parts[Q][kMany];
  for (int q = 0; q < Q; ++q) {
    for (int v = 0; v < kMany; ++v) parts[q][v] = V::load(sums + q * stride + d + v * kLanes);
  }
  for (int i = 0; i < n; ++i) {
    V weight[Q];
    for (int q = 0; q < Q; ++q) weight[q] = V::broadcast(weights[q * kChunkKeys + i]);
    for (int v = 0; v < kMany; ++v) {
      const V value = V::load(values[i] + d + v * kLanes);
      for (int q = 0; q < Q; ++q) parts[q][v] = fma(weight[q], value, parts[q][v]);
    }
  }
  for (int q = 0; q < Q; ++q) {
    for (int v = 0; v < kMany; ++v) parts[q][v].store(sums + q * stride + d + v * kLanes);
  }
}

template <class V, class Read, int Q>
void add_values(const Read* const* values, int n, int dim, const float* weights, float* sums,
                std::size_t stride) {
  constexpr int kMany = V::kAccumulators / (2 * Q) > 0 ? V::kAccumulators / (2 * Q) : 1;
  int d = 0;
  for (; d + kMany * kLanes <= dim; d += kMany * kLanes) {
    add_values_at<V, Read, Q, kMany>(values, n, d, weights, sums, stride);
  }
  for (; d + kLanes <= dim; d += kLanes) {
    add_values_at<V, Read, Q, 1>(values, n, d, weights, sums, stride);
  }
  if (d == dim) return;
  for (int q = 0; q < Q; ++q) {
    V part = V::load_first(sums + q * stride + d, dim - d);
    for (int i = 0; i < n; ++i) {
      part = fma(V::broadcast(weights[q * kChunkKeys + i]), V::load_first(values[i] + d, dim - d),
                 part);
    }
    part.store_first(sums + q * stride + d, dim - d);
  }
}

// Where one query's walk stands; its unnormalised sum is in out.
struct Walk {
  float highest;
  float total;
};

// The scores of a chunk become weights, and the walk's sum is brought to the new highest score.
template <class V>
void weigh(float* scores, const AttendArgs& args, Walk& walk, float* out) {
  V highest_lanes = V::broadcast(walk.highest);
  for (int i = 0; i < kChunkKeys; i += kLanes) {
    highest_lanes = max(highest_lanes, V::load(scores + i));
  }
  const float highest = reduce_max(highest_lanes);
  V sums = V::zero();
  for (int i = 0; i < kChunkKeys; i += kLanes) {
    const V weight = exponential(V::load(scores + i) - V::broadcast(highest));
    weight.store(scores + i);
    sums = sums + weight;
  }
  // What the chunks before count for now that the highest score is known better: 0 at first.
  const V shrink = exponential(V::broadcast(walk.highest - highest));
  float factor[kLanes];
  shrink.store(factor);
  walk.total = __builtin_fmaf(walk.total, factor[0], reduce_add(sums));
  walk.highest = highest;
  const int dim = args.head_dim;
  for (int d = 0; d < dim; d += kLanes) store_at(load_at<V>(out, d, dim) * shrink, out, d, dim);
}

// Query heads that are worked on together: their weights stay in the first cache.
constexpr int kMostQueries = 8;

// Takes one row's n_queries heads (from first_query on, at most kMostQueries) over a chunk of n
// keys, then over its values.
template <class V, class Read>
void score_chunk(const AttendArgs& args, const AttendRow& row, int first_query, int n_queries,
                 const Read* const* keys, int n, Walk* walks,
                 float (&weights)[kMostQueries][kChunkKeys]) {
  for (int q = 0; q < n_queries; ++q) {
    const float* query =
        row.queries + static_cast<std::size_t>(first_query + q) * args.query_stride;
    float* scores = weights[q];
    for (int at = 0; at < n; at += kLanes) {
      (dot_sixteen<V>(query, keys + at, args.head_dim) * V::broadcast(args.scale))
          .store(scores + at);
    }
    for (int i = n; i < kChunkKeys; ++i) scores[i] = -__builtin_inff();
    weigh<V>(scores, args, walks[q],
             row.out + static_cast<std::size_t>(first_query + q) * args.out_stride);
  }
}

template <class V, class Read>
void sum_chunk(const AttendArgs& args, const AttendRow& row, int first_query, int n_queries,
               const Read* const* values, int n, const float (&weights)[kMostQueries][kChunkKeys]) {
  float* out = row.out + static_cast<std::size_t>(first_query) * args.out_stride;
  int q = 0;
  for (; q + 2 <= n_queries; q += 2) {
    add_values<V, Read, 2>(values, n, args.head_dim, weights[q], out + q * args.out_stride,
                           args.out_stride);
  }
  if (q < n_queries) {
    add_values<V, Read, 1>(values, n, args.head_dim, weights[q], out + q * args.out_stride,
                           args.out_stride);
  }
}

// Softmax while reading (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"),
// one chunk of positions at a time. Chunks begin at fixed positions, so that a position's
// arithmetic does not depend on how the keys came to be there, nor on who walks along; out holds
// the running, unnormalised sums. Element: as stored; Read: as the loops read it.
template <class V, class Element, class Read>
void attend_to(const AttendArgs& args, int first_query, int n_queries) {
  constexpr int kRoom = sizeof(Element) == sizeof(Read) ? 1 : kChunkKeys * kMostWidenedDim;
  alignas(64) float room[kRoom];
  alignas(64) float weights[kMostAttendRows][kMostQueries][kChunkKeys];
  Walk walks[kMostAttendRows][kMostQueries];
  const Read* parts[kChunkKeys];
  for (int r = 0; r < args.n_rows; ++r) {
    for (int q = 0; q < n_queries; ++q) {
      walks[r][q] = {-__builtin_inff(), 0.0F};
      float* out = args.rows[r].out + static_cast<std::size_t>(first_query + q) * args.out_stride;
      for (int d = 0; d < args.head_dim; ++d) out[d] = 0.0F;
    }
  }
  for (int first = 0; first < args.n_shared; first += kChunkKeys) {
    read_chunk<V, Element, Read>(args.shared_keys + first, kChunkKeys, args, room, parts);
    for (int r = 0; r < args.n_rows; ++r) {
      score_chunk<V, Read>(args, args.rows[r], first_query, n_queries, parts, kChunkKeys, walks[r],
                           weights[r]);
    }
    read_chunk<V, Element, Read>(args.shared_values + first, kChunkKeys, args, room, parts);
    for (int r = 0; r < args.n_rows; ++r) {
      sum_chunk<V, Read>(args, args.rows[r], first_query, n_queries, parts, kChunkKeys, weights[r]);
    }
  }
  for (int r = 0; r < args.n_rows; ++r) {
    const AttendRow& row = args.rows[r];
    for (int first = args.n_shared; first < row.n_keys; first += kChunkKeys) {
      const int left = row.n_keys - first;
      const int n = left < kChunkKeys ? left : kChunkKeys;
      const int at = first - args.n_shared;
      read_chunk<V, Element, Read>(row.keys + at, n, args, room, parts);
      score_chunk<V, Read>(args, row, first_query, n_queries, parts, n, walks[r], weights[r]);
      read_chunk<V, Element, Read>(row.values + at, n, args, room, parts);
      sum_chunk<V, Read>(args, row, first_query, n_queries, parts, n, weights[r]);
    }
    for (int q = 0; q < n_queries; ++q) {
      float* out = row.out + static_cast<std::size_t>(first_query + q) * args.out_stride;
      const V inverse = V::broadcast(1.0F / walks[r][q].total);
      const int dim = args.head_dim;
      for (int d = 0; d < dim; d += kLanes) {
        store_at(load_at<V>(out, d, dim) * inverse, out, d, dim);
      }
    }
  }
}

template <class V>
void attend(const AttendArgs& args) {
  for (int q = 0; q < args.n_queries; q += kMostQueries) {
    const int n = args.n_queries - q < kMostQueries ? args.n_queries - q : kMostQueries;
    if (args.kv == KvKind::f32) {
      attend_to<V, float, float>(args, q, n);
    } else if (args.head_dim <= kMostWidenedDim) {
      attend_to<V, std::uint16_t, float>(args, q, n);
    } else {
      attend_to<V, std::uint16_t, std::uint16_t>(args, q, n);
    }
  }
}

// --- The table ---------------------------------------------------------------------------------

template <class V, class Dots>
constexpr KernelTable make_table(const char* name) {
  return KernelTable{
      .name = name,
      .tile_bytes = {tile_bytes_f32, tile_bytes_bf16, tile_bytes_int8, tile_bytes_int4},
      .pack_tile = {pack_tile_f32, pack_tile_bf16, pack_tile_int8, pack_tile_int4},
      .matmul = {matmul_plain<V, float>, matmul_plain<V, std::uint16_t>,
                 matmul_quantized<V, Dots, WeightKind::int8>,
                 matmul_quantized<V, Dots, WeightKind::int4>},
      .quantize_row = quantize_row<V>,
      .round_row = nullptr,
      .rms_norm = rms_norm<V>,
      .rotate = rotate<V>,
      .silu_multiply = silu_multiply<V>,
      .add = add_to<V>,
      .to_bf16 = round_to_bf16<V>,
      .attend = attend<V>,
  };
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_ALGORITHMS_H_
