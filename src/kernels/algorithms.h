// Every kernel, once, over a vector type V of 16 floats and a type Dots of integer dot products.
// Each instruction set's file defines its V and Dots and calls make_table<V, Dots>(name).
//
// V offers: zero, broadcast(float), load(const float*), load(const uint16_t* bf16),
// load_first and store_first of n < 16 elements (zeros behind what is loaded),
// load_f16(const uint16_t*), store(float*), store_int8(int8_t*) of integers in -128..127; + - * /;
// fma(a, b, c) = a * b + c rounded once; max(a, b) = a > b ? a : b and min(a, b) = a < b ? a : b
// (so a NaN in b passes, as in the x86 instructions); absolute; shift_left_23 of the bits;
// reduce_add by the tree of table.h and reduce_max; kAccumulators, how many V the registers hold
// beside the operands of a product, and kMaxRows <= kAccumulators.
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

// R rows times one tile of int8 or int4 weights.
template <class V, class Dots, WeightKind kKind, int R>
void multiply_quantized(const MatmulArgs& args, int tile, int row) {
  constexpr bool kInt8 = kKind == WeightKind::int8;
  const std::byte* weights =
      static_cast<const std::byte*>(args.tiles) + tile * packed_tile_bytes(kKind, args.k);
  const int n_groups = group_count(args.k);
  const std::int8_t* quantized = args.quantized + std::size_t{kGroup} * row;
  V sums[R];
  for (int r = 0; r < R; ++r) sums[r] = V::zero();
  for (int group = 0; group < n_groups; ++group) {
    const std::size_t first = static_cast<std::size_t>(group) * args.slots;
    const GroupInputs inputs{quantized + first * kGroup, args.quantized_sums + first + row};
    const float* input_scales = args.quantized_scales + first + row;
    const std::byte* at = weights + (kInt8 ? int8_weights_at(group) : int4_weights_at(group));
    prefetch_lines(at, kInt8 ? kInt8PairBytes / 2 : kInt4GroupBytes);
    V dots[R];
    if constexpr (kInt8) {
      Dots::template int8<R>(at, inputs, dots);
    } else {
      Dots::template int4<R>(at, inputs, dots);
    }
    const std::size_t scales_at = kInt8 ? int8_scales_at(group) : int4_scales_at(group);
    const V scale = V::load_f16(reinterpret_cast<const std::uint16_t*>(weights + scales_at));
    for (int r = 0; r < R; ++r) {
      sums[r] = fma(dots[r], scale * V::broadcast(input_scales[r]), sums[r]);
    }
    if constexpr (!kInt8) {
      const V minimum =
          V::load_f16(reinterpret_cast<const std::uint16_t*>(weights + int4_minimums_at(group)));
      const float* scaled_sums = args.scaled_sums + first + row;
      for (int r = 0; r < R; ++r) sums[r] = fma(V::broadcast(scaled_sums[r]), minimum, sums[r]);
    }
  }
  for (int r = 0; r < R; ++r) store_tile(sums[r], args, row + r, tile);
}

template <class V, class Dots, WeightKind kKind>
struct QuantizedStep {
  const MatmulArgs& args;
  int tile;
  template <int R>
  void run(int row) const {
    multiply_quantized<V, Dots, kKind, R>(args, tile, row);
  }
};

template <class V, class Dots, WeightKind kKind>
void matmul_quantized(const MatmulArgs& args) {
  for (int tile = args.first_tile; tile < args.first_tile + args.n_tiles; ++tile) {
    for_row_blocks<Dots::kMaxRows>(args.n_rows, QuantizedStep<V, Dots, kKind>{args, tile});
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

template <class V, class Element>
float dot(const float* a, const Element* b, int n) {
  V sums = V::zero();
  for (int i = 0; i < n; i += kLanes) {
    sums = fma(load_at<V>(a, i, n), load_at<V>(b, i, n), sums);
  }
  return reduce_add(sums);
}

// Softmax while reading (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"),
// one chunk of positions at a time. Chunks begin at fixed positions, so that a position's
// arithmetic does not depend on how the keys came to be there; out holds the running, unnormalised
// sum.
template <class V, class Element>
void attend_one(const AttendArgs& args, const float* query, float* out) {
  const float minus_infinity = -__builtin_inff();
  const int dim = args.head_dim;
  float highest = minus_infinity;
  float total = 0.0F;
  for (int i = 0; i < dim; ++i) out[i] = 0.0F;
  for (int first = 0; first < args.n_keys; first += kChunkKeys) {
    const int left = args.n_keys - first;
    const int n = left < kChunkKeys ? left : kChunkKeys;
    float weights[kChunkKeys];  // the scores, then their exponentials; 0 past n
    V highest_lanes = V::broadcast(highest);
    for (int i = 0; i < kChunkKeys; ++i) {
      weights[i] = minus_infinity;
      if (i >= n) continue;
      const auto* key = static_cast<const Element*>(args.keys[first + i]) + args.head_offset;
      weights[i] = dot<V>(query, key, dim) * args.scale;
    }
    for (int i = 0; i < kChunkKeys; i += kLanes) {
      highest_lanes = max(highest_lanes, V::load(weights + i));
    }
    const float new_highest = reduce_max(highest_lanes);
    V sums = V::zero();
    for (int i = 0; i < kChunkKeys; i += kLanes) {
      const V weight = exponential(V::load(weights + i) - V::broadcast(new_highest));
      weight.store(weights + i);
      sums = sums + weight;
    }
    // What the chunks before count for now that the highest score is known better: 0 at first.
    float shrink[kLanes];
    exponential(V::broadcast(highest - new_highest)).store(shrink);
    total = __builtin_fmaf(total, shrink[0], reduce_add(sums));
    highest = new_highest;
    for (int i = 0; i < dim; i += kLanes) {
      V sum = load_at<V>(out, i, dim) * V::broadcast(shrink[0]);
      for (int j = 0; j < n; ++j) {
        const auto* value = static_cast<const Element*>(args.values[first + j]) + args.head_offset;
        sum = fma(V::broadcast(weights[j]), load_at<V>(value, i, dim), sum);
      }
      store_at(sum, out, i, dim);
    }
  }
  const V inverse = V::broadcast(1.0F / total);
  for (int i = 0; i < dim; i += kLanes) store_at(load_at<V>(out, i, dim) * inverse, out, i, dim);
}

template <class V>
void attend(const AttendArgs& args) {
  for (int q = 0; q < args.n_queries; ++q) {
    const float* query = args.queries + q * args.query_stride;
    float* out = args.out + q * args.out_stride;
    if (args.kv == KvKind::f32) {
      attend_one<V, float>(args, query, out);
    } else {
      attend_one<V, std::uint16_t>(args, query, out);
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
