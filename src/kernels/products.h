// SPDX-License-Identifier: Apache-2.0
// Matrix products (GEMV and GEMM) over a vector type V and integer dot products Dots: y = x W^T for
// weights of every kind, in the order of additions that table.h fixes.
#ifndef OUTRIDER_KERNELS_PRODUCTS_H_
#define OUTRIDER_KERNELS_PRODUCTS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/formats/block_formats.h"
#include "kernels/formats/scales.h"
#include "kernels/group_dots.h"
#include "kernels/layout.h"
#include "kernels/table.h"
#include "kernels/vectors/float_vector.h"
#include "kernels/vectors/vector_math.h"

namespace outrider::kernels {
namespace {

// Tiles that few rows process at a time, each a separate stream of weights. The hardware prefetcher
// follows each stream, and several reach a higher bandwidth than one (one row over four streams:
// 1.35 times the bytes a second).
constexpr int kMaxStreams = 4;

// Processes all tiles in kStreams parallel streams, each over a contiguous share of the tiles:
// step<kStreams>(tile, apart) for tiles tile, tile + apart, ... together, step<1>(tile, 1) for each
// of those left over. (Streams in adjacent tiles would jump at every tile's end, and the prefetcher
// would start again. With shares, tiles of 10 KB were 1.05 to 1.35 times as fast, long ones 1.05
// times.)
template <int kStreams, class Step>
void for_tiles_in_streams(const MatmulArgs& args, const Step& step) {
  const int apart = args.n_tiles / kStreams;
  for (int i = 0; i < apart; ++i) {
    step.template operator()<kStreams>(args.first_tile + i, apart);
  }
  for (int i = kStreams * apart; i < args.n_tiles; ++i) {
    step.template operator()<1>(args.first_tile + i, 1);
  }
}

// The prefetch distance of weights: about 100 ns of latency at 20 GB/s a thread are 2 KB, and as
// much again for its variation. (The hardware prefetcher stops at page boundaries.)
constexpr std::size_t kPrefetchBytes = 4608;

// Prefetches each stream's weights at a fixed distance into the L2 cache. A prefetch into the L1
// cache would keep one of its few miss buffers busy for the whole memory latency (24 lines in 100
// ns are 15 GB/s).
template <std::size_t kAhead>
struct FixedWayAhead {
  void step() {}
  // Called when n_bytes at `at` are read.
  static void read(const std::byte* at, std::size_t n_bytes) {
    for (std::size_t line = 0; line < n_bytes; line += kLineBytes) {
      __builtin_prefetch(at + kAhead + line, 0, 2);
    }
  }
};

// Prefetches weights that will be multiplied soon into the L2 cache while others are multiplied.
// Prefetching every line in sequence is limited by a core's few miss buffers (16 lines in 90 ns are
// 11 GB/s). The L2 cache's own prefetcher has three times as many requests in flight, but follows
// lines only within a page. So four parts of the coming weights are prefetched in parallel: the
// hardware prefetcher runs ahead in all of them, and most prefetches find their line there. (16
// rows of int8 over 1 GB, against one row's 33 ms: one stream 48 ms, two 44, four 40; eight 39, but
// a short block has too few lines for so many.)
class PrefetchStreams {
 public:
  // Prefetches the share-th of n_shares of the n_bytes at `from`, in n_steps steps.
  PrefetchStreams(const std::byte* from, std::size_t n_bytes, int share, int n_shares, int n_steps)
      : n_steps_(n_steps) {
    const auto n_lines = static_cast<int>(n_bytes / kLineBytes);
    const int of_stream = (n_lines + kStreams - 1) / kStreams;
    const int begin = of_stream * share / n_shares;
    n_lines_ = of_stream * (share + 1) / n_shares - begin;
    next_ = from + static_cast<std::size_t>(begin) * kLineBytes;
    stride_ = static_cast<std::size_t>(of_stream) * kLineBytes;
  }

  // One step of n_steps.
  void step() {
    for (due_ += n_lines_; due_ >= n_steps_; due_ -= n_steps_) {
      for (int i = 0; i < kStreams; ++i) {
        __builtin_prefetch(next_ + static_cast<std::size_t>(i) * stride_, 0, 2);
      }
      next_ += kLineBytes;
    }
  }
  static void read(const std::byte*, std::size_t) {}

 private:
  static constexpr int kStreams = 4;

  int n_steps_;
  int n_lines_;  // of each stream
  int due_ = 0;  // lines times steps
  const std::byte* next_;
  std::size_t stride_;
};

// For weights that need no prefetch here.
struct NothingAhead {
  void step() {}
  static void read(const std::byte*, std::size_t) {}
};

// Columns of the whole matrix in a tile: 16, or fewer in the last.
inline int tile_columns(const MatmulArgs& args, int tile) {
  const int left = args.n_columns - tile * kTileColumns;
  return left < kTileColumns ? left : kTileColumns;
}

template <FloatVector V>
void store_tile(V value, const MatmulArgs& args, int row, int tile) {
  float* y = args.y + static_cast<std::size_t>(row) * args.y_stride;
  store_at(value, y, tile * kTileColumns, tile * kTileColumns + tile_columns(args, tile));
}

// Calls step.run<n_rows>(row), n_rows in 1..Max.
template <int Max, class Step>
void run_rows(int n_rows, int row, const Step& step) {
  if constexpr (Max > 1) {
    if (n_rows < Max) return run_rows<Max - 1>(n_rows, row, step);
  }
  step.template run<Max>(row);
}

// Calls step.run<R>(row) over all rows in the fewest blocks of at most Max rows, whose heights
// differ by at most one: a short last block would read all weights for few rows.
template <int Max, class Step>
void for_row_blocks(int n_rows, const Step& step) {
  int row = 0;
  for (int n_blocks = (n_rows + Max - 1) / Max; n_blocks > 0; --n_blocks) {
    const int height = (n_rows - row + n_blocks - 1) / n_blocks;
    run_rows<Max>(height, row, step);
    row += height;
  }
}

// R rows times T tiles, `apart` from one another, of f32 (Element float) or bf16 (Element uint16_t)
// weights.
template <FloatVector V, class Element, int R, int T>
void multiply_plain(const MatmulArgs& args, int tile, int apart, int row) {
  const std::size_t tile_bytes = plain_tile_bytes<Element>(args.k);
  const std::size_t apart_bytes = static_cast<std::size_t>(apart) * tile_bytes;
  const std::byte* weights = static_cast<const std::byte*>(args.tiles) + tile * tile_bytes;
  const float* x = args.x + static_cast<std::size_t>(row) * args.x_stride;
  V sums[R][T];
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) sums[r][t] = V::zero();
  }
  const auto weights_at = [&](int t, int i) {
    const std::byte* at = weights + t * apart_bytes + i * (sizeof(Element) * kTileColumns);
    __builtin_prefetch(at + kPrefetchBytes / T);
    return V::load_mixed(reinterpret_cast<const Element*>(at));
  };
  for (int i = 0; i < args.k; ++i) {
    if constexpr (T > 1 && R * T > V::kSumsBesideInputs) {
      for (int t = 0; t < T; ++t) {
        const V w = weights_at(t, i);
        for (int r = 0; r < R; ++r) {
          const float* input = x + static_cast<std::size_t>(r) * args.x_stride + i;
          sums[r][t] = fma(V::broadcast_anew(input), w, sums[r][t]);
        }
      }
    } else {
      V w[T];
      for (int t = 0; t < T; ++t) w[t] = weights_at(t, i);
      for (int r = 0; r < R; ++r) {
        const V input = V::broadcast(x[static_cast<std::size_t>(r) * args.x_stride + i]);
        for (int t = 0; t < T; ++t) sums[r][t] = fma(input, w[t], sums[r][t]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) {
      store_tile(V::template in_order<Element>(sums[r][t]), args, row + r, tile + t * apart);
    }
  }
}

// How many of n_tiles tiles are processed together if registers have room for `room`.
constexpr int tiles_together(int room, int n_tiles) {
  if (room >= n_tiles) return n_tiles;
  return room >= 2 && n_tiles % 2 == 0 ? 2 : 1;
}

// kTiles adjacent tiles, as many together as the registers hold sums for.
template <FloatVector V, class Element, int kTiles>
struct PlainStep {
  const MatmulArgs& args;
  int tile;
  template <int R>
  void run(int row) const {
    constexpr int kTogether = tiles_together(V::kAccumulators / R, kTiles);
    for (int t = 0; t < kTiles; t += kTogether) {
      multiply_plain<V, Element, R, kTogether>(args, tile + t, 1, row);
    }
  }
};

// All tiles with R rows, which are all rows. Several tiles at a time: with one row, a single chain
// of dependent additions would be slower than memory.
template <FloatVector V, class Element>
struct PlainStreamStep {
  const MatmulArgs& args;
  template <int R>
  void run(int row) const {
    constexpr int kStreams = R == 1 ? V::kOneRowTiles : tiles_together(V::kAccumulators / R, 2);
    for_tiles_in_streams<kStreams>(args, [&]<int T>(int tile, int apart) {
      multiply_plain<V, Element, R, T>(args, tile, apart, row);
    });
  }
};

// With more rows, each block of rows reads a tile again, from the cache if tiles are few.
template <FloatVector V, class Element>
void matmul_plain(const MatmulArgs& args) {
  if (args.n_rows <= V::kMaxRows) {
    return for_row_blocks<V::kMaxRows>(args.n_rows, PlainStreamStep<V, Element>{args});
  }
  const int end = args.first_tile + args.n_tiles;
  int tile = args.first_tile;
  for (; tile + 2 <= end; tile += 2) {
    for_row_blocks<V::kMaxRows>(args.n_rows, PlainStep<V, Element, 2>{args, tile});
  }
  if (tile < end) for_row_blocks<V::kMaxRows>(args.n_rows, PlainStep<V, Element, 1>{args, tile});
}

// R rows times T tiles of weights with scales of groups, `apart` from one another.
template <FloatVector V, GroupDots<V> Dots, class Format, int R, int T, class Ahead>
void multiply_groups(const MatmulArgs& args, int tile, int apart, int row, Ahead ahead) {
  using Scales = typename Format::Scales;
  const std::size_t tile_bytes = Format::tile_bytes(args.k);
  const std::size_t apart_bytes = static_cast<std::size_t>(apart) * tile_bytes;
  const std::byte* weights = static_cast<const std::byte*>(args.tiles) + tile * tile_bytes;
  const int n_groups = group_count(args.k);
  const std::int8_t* quantized = args.quantized + std::size_t{kGroup} * row;
  V sums[R][T];
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) sums[r][t] = V::zero();
  }
  for (int group = 0; group < n_groups; ++group) {
    ahead.step();
    const std::size_t first = static_cast<std::size_t>(group) * args.slots;
    const std::size_t place = first + static_cast<std::size_t>(row);
    const GroupInputs inputs{quantized + first * kGroup, args.quantized_sums + place};
    const ScaledInputs scaled{args.quantized_scales + place, args.scaled_sums + place};
    const std::size_t scales_at = Format::scales_at(group);
    const std::size_t block_scales_at = Format::block_scales_at(group);
    const std::size_t read_at = Format::read_at(group);
    const auto scale_and_add = [&](int t, const V(&dots)[1][R]) {
      const std::byte* at = weights + t * apart_bytes;
      Ahead::read(at + read_at, Format::kReadBytes);
      Scales::template add<V, R>(at + scales_at, at + block_scales_at, scaled, dots[0],
                                 [&](int r) -> V& { return sums[r][t]; });
    };
    const GroupWeights group_weights{weights + Format::weights_at(group), apart_bytes};
    Dots::template dots<typename Format::Codes, 1, R, T>(group_weights, inputs, scale_and_add);
  }
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) store_tile(sums[r][t], args, row + r, tile + t * apart);
  }
}

// The number of groups whose sums of s * dot, added as floats, are exact: below 2^24. A power of
// two.
template <class Format>
constexpr int exact_groups() {
  const long long of_group = 32LL * Format::Codes::kMaxSize * 127 * Format::Scales::kMaxScale;
  int n = 1;
  while (2 * n <= Format::kGroups && 2 * n * of_group < (1LL << 24)) n *= 2;
  return n;
}

// The same for weights in blocks. Sums that are exact as floats are added as integers.
template <FloatVector V, GroupDots<V> Dots, class Format, int R, int T, class Ahead>
void multiply_whole_blocks(const MatmulArgs& args, int tile, int apart, int row, Ahead ahead) {
  using Scales = typename Format::Scales;
  constexpr int kParts = Scales::kParts;
  constexpr int kExact = exact_groups<Format>();
  const std::size_t tile_bytes = Format::tile_bytes(args.k);
  const std::size_t apart_bytes = static_cast<std::size_t>(apart) * tile_bytes;
  const std::byte* weights = static_cast<const std::byte*>(args.tiles) + tile * tile_bytes;
  const auto slots = static_cast<std::size_t>(args.slots);
  const int n_blocks = blocks_of(args.k);
  V sums[R][T];
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) sums[r][t] = V::zero();
  }
  for (int block = 0; block < n_blocks; ++block) {
    const std::size_t place =
        static_cast<std::size_t>(block) * slots + static_cast<std::size_t>(row);
    const float* float_sums = args.float_sums + place * kBlockGroups;
    const std::int16_t* half_sums =
        kParts == 2 ? args.half_sums + 2 * place * kBlockGroups : nullptr;
    typename V::Integers whole[R][T];
    V minimum_sums[R][T];  // M
    for (int r = 0; r < R; ++r) {
      for (int t = 0; t < T; ++t) {
        whole[r][t] = V::Integers::zero();
        minimum_sums[r][t] = V::zero();
      }
    }
#pragma GCC unroll 1
    for (int begin = 0; begin < kBlockGroups; begin += kExact) {
      V exact[R][T];
      for (int r = 0; r < R; ++r) {
        for (int t = 0; t < T; ++t) exact[r][t] = V::zero();
      }
#pragma GCC unroll 1
      for (int of_block = begin; of_block < begin + kExact; ++of_block) {
        ahead.step();
        const int group = block * kBlockGroups + of_block;
        const std::size_t run =
            static_cast<std::size_t>(group / 2) * slots + static_cast<std::size_t>(row);
        const BlockInputs inputs{args.block_values + run * kBlockRun + group % 2 * kGroup,
                                 kParts == 2 ? half_sums + 2 * of_block
                                             : args.group_sums + place * kBlockGroups + of_block,
                                 kParts * kBlockGroups};
        const auto scale_and_add = [&](int t, const V(&dots)[kParts][R]) {
          const std::byte* at = weights + t * apart_bytes;
          Ahead::read(at + Format::read_at(group), Format::kReadBytes);
          const std::byte* of_group = at + Format::scales_at(group);
          for (int part = 0; part < kParts; ++part) {
            const V scale = Scales::template scale<V>(of_group, part);
            for (int r = 0; r < R; ++r) exact[r][t] = fma(dots[part][r], scale, exact[r][t]);
          }
          if constexpr (Scales::kMinimums) {
            for (int part = 0; part < kParts; ++part) {
              const V minimum = Scales::template minimum<V>(of_group, part);
              for (int r = 0; r < R; ++r) {
                const int at_row = r * kBlockGroups + of_block;
                const float x_sum = kParts == 1 ? float_sums[at_row]
                                                : static_cast<float>(half_sums[2 * at_row + part]);
                minimum_sums[r][t] = fma(V::broadcast(x_sum), minimum, minimum_sums[r][t]);
              }
            }
          }
        };
        const GroupWeights group_weights{weights + Format::weights_at(group), apart_bytes};
        Dots::template dots<typename Format::Codes, kParts, R, T>(group_weights, inputs,
                                                                  scale_and_add);
      }
      for (int r = 0; r < R; ++r) {
        for (int t = 0; t < T; ++t) whole[r][t].add_exact(exact[r][t]);
      }
    }
    for (int t = 0; t < T; ++t) {
      const std::byte* of_block =
          weights + t * apart_bytes + Format::block_scales_at(block * kBlockGroups);
      const V scale = Scales::template block_scale<V>(of_block);
      for (int r = 0; r < R; ++r) {
        V value = whole[r][t].rounded() * scale;
        if constexpr (Scales::kMinimums) {
          value = fma(minimum_sums[r][t], Scales::template block_minimum<V>(of_block), value);
        }
        sums[r][t] =
            fma(value, V::broadcast(args.block_scales[place + static_cast<std::size_t>(r)]),
                sums[r][t]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) store_tile(sums[r][t], args, row + r, tile + t * apart);
  }
}

// R rows times T tiles of quantised weights, `apart` from one another.
template <FloatVector V, GroupDots<V> Dots, class Format, int R, int T, class Ahead>
void multiply_quantized(const MatmulArgs& args, int tile, int apart, int row, Ahead ahead) {
  if constexpr (is_of_whole_blocks(Format::kKind)) {
    multiply_whole_blocks<V, Dots, Format, R, T>(args, tile, apart, row, ahead);
  } else {
    multiply_groups<V, Dots, Format, R, T>(args, tile, apart, row, ahead);
  }
}

// All tiles with R rows, which are all rows, in as many streams as the registers hold sums for.
template <FloatVector V, GroupDots<V> Dots, class Format>
struct StreamStep {
  const MatmulArgs& args;
  template <int R>
  void run(int row) const {
    constexpr int kStreams = tiles_together(Dots::kMaxRows / R, kMaxStreams);
    // One row reads at the memory's bandwidth. With more rows there is arithmetic between the
    // lines, so prefetches have more time.
    using Ahead = FixedWayAhead<R == 1 ? Dots::kOneRowAhead : kPrefetchBytes>;
    for_tiles_in_streams<kStreams>(args, [&]<int T>(int tile, int apart) {
      multiply_quantized<V, Dots, Format, R, T>(args, tile, apart, row, Ahead{});
    });
  }
};

// One tile. The first rows prefetch it, the others find it in the cache.
template <FloatVector V, GroupDots<V> Dots, class Format>
struct OneTileStep {
  const MatmulArgs& args;
  int tile;
  template <int R>
  void run(int row) const {
    if (row == 0) {
      multiply_quantized<V, Dots, Format, R, 1>(args, tile, 1, row,
                                                FixedWayAhead<kPrefetchBytes>{});
    } else {
      multiply_quantized<V, Dots, Format, R, 1>(args, tile, 1, row, NothingAhead{});
    }
  }
};

// Few rows in streams, more of them tile by tile.
template <FloatVector V, GroupDots<V> Dots, class Format>
void multiply_fixed_way_ahead(const MatmulArgs& args) {
  constexpr int kMax = Dots::kFixedWayRows < Dots::kMaxRows ? Dots::kFixedWayRows : Dots::kMaxRows;
  if (args.n_rows <= kMax) {
    return for_row_blocks<kMax>(args.n_rows, StreamStep<V, Dots, Format>{args});
  }
  if constexpr (Dots::kFixedWayRows > Dots::kMaxRows) {
    for (int tile = args.first_tile; tile < args.first_tile + args.n_tiles; ++tile) {
      for_row_blocks<kMax>(args.n_rows, OneTileStep<V, Dots, Format>{args, tile});
    }
  }
}

// kTiles adjacent tiles, as many together as the registers hold sums for.
template <FloatVector V, GroupDots<V> Dots, class Format, int kTiles>
struct BlockStep {
  const MatmulArgs& args;
  int tile;
  template <int R>
  void run(int row) const {
    constexpr int kTogether = tiles_together(Dots::kMaxRows / R, kTiles);
    for (int t = 0; t < kTiles; t += kTogether) {
      multiply_quantized<V, Dots, Format, R, kTogether>(args, tile + t, 1, row,
                                                        behind<kTogether>(t, row));
    }
  }

  // Prefetches the weights after those of the T tiles from tile + t on: as many bytes, or, if tiles
  // are short, their share of what follows all kTiles.
  template <int T>
  PrefetchStreams behind(int t, int row) const {
    const std::size_t tile_bytes = Format::tile_bytes(args.k);
    int begin = t;
    int n_tiles = T;
    if (kTiles * tile_bytes <= kMaxSharedBytes) {
      begin = 0;
      n_tiles = kTiles;
    }
    const auto* from = static_cast<const std::byte*>(args.tiles) +
                       static_cast<std::size_t>(tile + begin + n_tiles) * tile_bytes;
    // The first rows prefetch for all others.
    const std::size_t n_bytes = row == 0 ? static_cast<std::size_t>(n_tiles) * tile_bytes : 0;
    return PrefetchStreams(from, n_bytes, (t - begin) / T, n_tiles / T, group_count(args.k));
  }
  // A part of the L2 cache that is small on every machine.
  static constexpr std::size_t kMaxSharedBytes = std::size_t{64} << 10;
};

template <FloatVector V, GroupDots<V> Dots, class Format>
void multiply_in_blocks(const MatmulArgs& args) {
  const int end = args.first_tile + args.n_tiles;
  int tile = args.first_tile;
  for (; tile + kMaxStreams <= end; tile += kMaxStreams) {
    for_row_blocks<Dots::kMaxRows>(args.n_rows,
                                   BlockStep<V, Dots, Format, kMaxStreams>{args, tile});
  }
  for (; tile < end; ++tile) {
    for_row_blocks<Dots::kMaxRows>(args.n_rows, BlockStep<V, Dots, Format, 1>{args, tile});
  }
}

template <FloatVector V, GroupDots<V> Dots, class Format>
void matmul_quantized(const MatmulArgs& args) {
  if constexpr (Dots::kFixedWayRows != kAnyRows) {
    if (args.n_rows > Dots::kFixedWayRows) return multiply_in_blocks<V, Dots, Format>(args);
  }
  multiply_fixed_way_ahead<V, Dots, Format>(args);
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_PRODUCTS_H_
