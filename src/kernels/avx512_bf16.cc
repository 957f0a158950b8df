// SPDX-License-Identifier: Apache-2.0
// The avx512 table's product with bf16 weights on machines with AVX512_BF16. One instruction
// multiplies sixteen pairs of bf16 and adds both products to sixteen floats: twice the work of a
// multiply-add, without widening. Inputs are rounded to bf16 (round_row). The instruction rounds to
// nearest and flushes subnormals to zero, whatever the float environment. An output adds its pairs
// in the order of K, for any number of rows.
#if defined(__x86_64__)
#include "kernels/algorithms.h"
#include "kernels/attention/bf16_attention.h"
#include "kernels/attention/kv_layout.h"
#include "kernels/vectors/pairs512.h"
#include "kernels/vectors/vector512.h"

namespace outrider::kernels {
namespace {

constexpr int kPairs = kGroup / 2;

// R rows times T tiles, `apart` from one another: separate streams of weights, which the hardware
// prefetcher follows.
template <int R, int T>
void multiply_pairs(const MatmulArgs& args, int tile, int apart, int row) {
  const std::size_t tile_bytes = packed_pairs_bytes(args.k);
  const std::size_t apart_bytes = static_cast<std::size_t>(apart) * tile_bytes;
  const std::byte* weights =
      static_cast<const std::byte*>(args.tiles) + static_cast<std::size_t>(tile) * tile_bytes;
  const std::uint16_t* inputs = args.rounded + static_cast<std::size_t>(row) * kGroup;
  const std::size_t next_group = static_cast<std::size_t>(args.slots) * kGroup;
  __m512 sums[R][T];
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) sums[r][t] = _mm512_setzero_ps();
  }
  for (int group = 0; group < group_count(args.k); ++group) {
    for (int pair = 0; pair < kPairs; ++pair) {
      __m512bh w[T];
      for (int t = 0; t < T; ++t) {
        w[t] = __builtin_bit_cast(__m512bh,
                                  _mm512_load_si512(weights + t * apart_bytes + pair * kLineBytes));
      }
      for (int r = 0; r < R; ++r) {
        int two;
        __builtin_memcpy(&two, inputs + r * kGroup + pair * 2, 4);
        const auto input = __builtin_bit_cast(__m512bh, _mm512_set1_epi32(two));
        for (int t = 0; t < T; ++t) sums[r][t] = _mm512_dpbf16_ps(sums[r][t], input, w[t]);
      }
    }
    weights += kPairsGroupBytes;
    inputs += next_group;
  }
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) store_tile(Vector{sums[r][t]}, args, row + r, tile + t * apart);
  }
}

// Sums and a row of tiles' weights share the 32 registers.
constexpr int kMaxSums = 24;

template <int kTiles>
struct PairsStep {
  const MatmulArgs& args;
  int tile;
  template <int R>
  void run(int row) const {
    constexpr int kTogether = tiles_together(kMaxSums / R, kTiles);
    for (int t = 0; t < kTiles; t += kTogether) {
      multiply_pairs<R, kTogether>(args, tile + t, 1, row);
    }
  }
};

// All tiles with R rows, which is the number of all rows.
struct PairsStreamStep {
  const MatmulArgs& args;
  template <int R>
  void run(int row) const {
    constexpr int kStreams = tiles_together(kMaxSums / R, kMaxStreams);
    for_tiles_in_streams<kStreams>(
        args, [&]<int T>(int tile, int apart) { multiply_pairs<R, T>(args, tile, apart, row); });
  }
};

struct Bf16Pairs : SumsOfPairs512 {
  static constexpr KvKind kKind = KvKind::bf16;

  template <int R, int T, class Rows, class Ahead, class Use>
  static void dots(const std::byte* cells, std::size_t row_bytes, int n, const Rows& rows,
                   const Ahead& ahead, const Use& use) {
    __m512 sums[R][T];
    for (int r = 0; r < R; ++r) {
      for (int t = 0; t < T; ++t) sums[r][t] = _mm512_setzero_ps();
    }
    const auto add = [&](int i, const __m512i(&columns)[T]) {
      for (int r = 0; r < R; ++r) {
        const auto pair = __builtin_bit_cast(__m512bh, broadcast_pair(rows.at(r) + i));
        for (int t = 0; t < T; ++t) {
          const auto column = __builtin_bit_cast(__m512bh, columns[t]);
          sums[r][t] = _mm512_dpbf16_ps(sums[r][t], pair, column);
        }
      }
    };
    std::size_t at = 0;
    __m512i columns[T];
    const auto load = [&] {
      for (int t = 0; t < T; ++t) {
        columns[t] = _mm512_loadu_si512(cells + at + static_cast<std::size_t>(t) * kLineBytes);
      }
    };
    int i = 0;
    for (; i + 2 <= n; i += 2, at += row_bytes) {
      ahead.template row<T>(at);
      load();
      add(i, columns);
    }
    if (i < n) {
      // Half a pair: the other half may be anything, and 0 times that may be NaN.
      load();
      for (int t = 0; t < T; ++t) {
        columns[t] = _mm512_and_si512(columns[t], _mm512_set1_epi32(0xffff));
      }
      add(i, columns);
    }
    for_sums<R, T>([&](int r, int t) { use(r, t, Vector{sums[r][t]}); });
  }
};
static_assert(AttentionDots<Bf16Pairs, Vector, StridedRows<std::uint16_t>>);

}  // namespace

void matmul_bf16_pairs(const MatmulArgs& args) {
  constexpr int kMaxRows = 8;
  if (args.n_rows <= kMaxRows) {
    return for_row_blocks<kMaxRows>(args.n_rows, PairsStreamStep{args});
  }
  const int end = args.first_tile + args.n_tiles;
  int tile = args.first_tile;
  for (; tile + kMaxStreams <= end; tile += kMaxStreams) {
    for_row_blocks<kMaxRows>(args.n_rows, PairsStep<kMaxStreams>{args, tile});
  }
  for (; tile < end; ++tile) for_row_blocks<kMaxRows>(args.n_rows, PairsStep<1>{args, tile});
}

void round_row_to_pairs(const float* x, int k, std::uint16_t* out, int slots) {
  round_row<Vector>(x, k, out, slots);
}

void attend_bf16_pairs(const AttendArgs& args) {
  attend_with<Vector, Bf16Pairs, Bf16Numbers<Vector, Bf16Pairs>>(args);
}

}  // namespace outrider::kernels
#endif  // __x86_64__
