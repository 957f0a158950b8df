// SPDX-License-Identifier: Apache-2.0
// Products on machines with matrix units (Intel AMX: INT8 and BF16 tiles). The rest of this table
// is the avx512 table's arithmetic.
//
// A tile register holds up to 16 rows of 64 bytes. One instruction multiplies a tile of inputs
// (rows of the batch) by a tile of weights (16 outputs) and adds to a tile of sums. A row of sums
// depends on its own row of inputs alone.
//
// Quantised weights: amx_product.h, amx_block_product.h.
//
// bf16: the units' own order of additions, the same for every number of rows.
#if defined(__x86_64__)
#include "kernels/algorithms.h"
#include "kernels/amx_block_product.h"
#include "kernels/amx_product.h"
#include "kernels/vectors/tile_shape.h"
#include "kernels/vectors/vector512.h"

namespace outrider::kernels {
namespace {

// Row tiles per pass over the weights: 128 rows, whose inputs, half a megabyte or more, still fit
// into the L2 cache.
constexpr int kMaxRowTilesBf16 = 8;

// --- int8 and int4 -----------------------------------------------------------------------------

// Up to this many rows, one vector instruction per four products is as fast as loading and storing
// tiles; the bits are equal. (Whole passes, milliseconds by vectors and by tiles. int8: 1.1 billion
// parameters equal from 4 to 8 rows; 125 million 6.5 and 6.1 for 6, 7.5 and 6.8 for 8; 7 million
// 0.33 and 0.37 for 5, 0.44 and 0.44 for 8: 6 is in the middle. int4: 1.1 billion 32 and 37 for 8.
// Q4_K_M: 1.5 billion 47 and 51 for 6, 51 and 51 for 8.)
template <WeightKind kKind>
constexpr int kFewRows = kKind == WeightKind::int8 ? 6 : 8;

void matmul_int8_amx(const MatmulArgs& args) {
  if (args.n_rows <= kFewRows<WeightKind::int8>) return matmul_int8_vnni_side_by_side(args);
  matmul_by_tiles<Int8>(args);
}
void matmul_int4_amx(const MatmulArgs& args) {
  if (args.n_rows <= kFewRows<WeightKind::int4>) return matmul_int4_vnni_side_by_side(args);
  matmul_by_tiles<Int4>(args);
}
template <WeightKind kKind>
void matmul_stored_amx(const MatmulArgs& args) {
  if (args.n_rows <= kFewRows<kKind>) return matmul_stored_vnni<kKind>(args);
  if constexpr (is_of_whole_blocks(kKind)) {
    matmul_blocks_by_tiles<FormatOf<kKind>>(args);
  } else {
    matmul_by_tiles<FormatOf<kKind>>(args);
  }
}

// --- bf16 --------------------------------------------------------------------------------------

// kRowTiles x kColumnTiles tiles of the product, at most four in all.
template <int kRowTiles, int kColumnTiles, class Ahead = NothingAhead>
void multiply_bf16(const MatmulArgs& args, int tile, int row, int height, Ahead ahead = {}) {
  static_assert(kRowTiles == 1 ? kColumnTiles <= 4 : kRowTiles == 2 && kColumnTiles <= 2);
  const std::size_t tile_bytes = packed_pairs_bytes(args.k);
  const std::byte* weights =
      static_cast<const std::byte*>(args.tiles) + static_cast<std::size_t>(tile) * tile_bytes;
  const std::uint16_t* inputs = args.rounded + static_cast<std::size_t>(row) * kGroup;
  const std::size_t next_tile = static_cast<std::size_t>(height) * kGroup;
  const std::size_t next_group = static_cast<std::size_t>(args.slots) * kGroup;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int group = 0; group < group_count(args.k); ++group) {
    _tile_loadd(6, inputs, kGroup * 2);
    if constexpr (kRowTiles == 2) _tile_loadd(7, inputs + next_tile, kGroup * 2);
    _tile_loadd(4, weights, kLineBytes);
    _tile_dpbf16ps(0, 6, 4);
    if constexpr (kRowTiles == 2) _tile_dpbf16ps(2, 7, 4);
    ahead.step();
    if constexpr (kColumnTiles > 1) {
      _tile_loadd(5, weights + tile_bytes, kLineBytes);
      _tile_dpbf16ps(1, 6, 5);
      if constexpr (kRowTiles == 2) _tile_dpbf16ps(3, 7, 5);
    }
    if constexpr (kColumnTiles > 2) {
      _tile_loadd(4, weights + 2 * tile_bytes, kLineBytes);
      _tile_dpbf16ps(2, 6, 4);
    }
    if constexpr (kColumnTiles > 3) {
      _tile_loadd(5, weights + 3 * tile_bytes, kLineBytes);
      _tile_dpbf16ps(3, 6, 5);
    }
    inputs += next_group;
    weights += kPairsGroupBytes;
  }
  alignas(64) float sums[4][16][kTileColumns];
  _tile_stored(0, sums[0], kLineBytes);
  if constexpr (kRowTiles * kColumnTiles > 1) _tile_stored(1, sums[1], kLineBytes);
  if constexpr (kRowTiles * kColumnTiles > 2 || kRowTiles == 2) {
    _tile_stored(2, sums[2], kLineBytes);
  }
  if constexpr (kRowTiles * kColumnTiles > 3) _tile_stored(3, sums[3], kLineBytes);
  for (int i = 0; i < kRowTiles; ++i) {
    for (int r = 0; r < height && row + i * height + r < args.n_rows; ++r) {
      for (int j = 0; j < kColumnTiles; ++j) {
        // With two row tiles, their sums are in registers 0, 1 and 2, 3.
        store_tile(Vector::load(sums[kRowTiles == 2 ? 2 * i + j : j][r]), args,
                   row + i * height + r, tile + j);
      }
    }
  }
}

// One row tile: four tiles of columns at a time. So the inputs are loaded once for all four, and
// there are four streams of weights. The hardware prefetcher follows each stream and reaches a
// higher memory bandwidth than with one (measured: 15 instead of 11 GB/s per core). Software
// prefetches on top would take buffers that the tiles' own loads need.
void multiply_bf16_row_tile(const MatmulArgs& args, int row, int height) {
  const int end = args.first_tile + args.n_tiles;
  for (int tile = args.first_tile; tile < end; tile += 4) {
    switch (end - tile) {
      case 1:
        multiply_bf16<1, 1>(args, tile, row, height);
        break;
      case 2:
        multiply_bf16<1, 2>(args, tile, row, height);
        break;
      case 3:
        multiply_bf16<1, 3>(args, tile, row, height);
        break;
      default:
        multiply_bf16<1, 4>(args, tile, row, height);
        break;
    }
  }
}

// Several row tiles: two by two. The first pair reads a pair of columns' weights from memory, the
// others find them in the cache. Multiplying and waiting for memory would alternate, since no load
// starts long before its tile is needed. So every pair prefetches its part of the next columns.
void multiply_bf16_row_tiles(const MatmulArgs& args, int first_row_tile, int n_row_tiles,
                             int height) {
  const std::size_t tile_bytes = packed_pairs_bytes(args.k);
  const int n_row_pairs = (n_row_tiles + 1) / 2;
  const int end = args.first_tile + args.n_tiles;
  for (int tile = args.first_tile; tile < end; tile += 2) {
    const bool two_columns = tile + 1 < end;
    const std::byte* next =
        static_cast<const std::byte*>(args.tiles) + static_cast<std::size_t>(tile + 2) * tile_bytes;
    for (int pair = 0; pair < n_row_pairs; ++pair) {
      const int row = (first_row_tile + 2 * pair) * height;
      const bool two_rows = 2 * pair + 1 < n_row_tiles;
      const PrefetchStreams ahead(next, 2 * tile_bytes, pair, n_row_pairs, group_count(args.k));
      if (two_rows && two_columns) {
        multiply_bf16<2, 2>(args, tile, row, height, ahead);
      } else if (two_rows) {
        multiply_bf16<2, 1>(args, tile, row, height);
      } else if (two_columns) {
        multiply_bf16<1, 2>(args, tile, row, height, ahead);
      } else {
        multiply_bf16<1, 1>(args, tile, row, height);
      }
    }
  }
}

void matmul_bf16_amx(const MatmulArgs& args) {
  const int height = row_tile_height(args.n_rows);
  if (height == 0) return;
  const TileShape shape(height, kGroup * 2, kGroup / 2);
  const int n_row_tiles = row_tiles(args.n_rows);
  for (int first = 0; first < n_row_tiles; first += kMaxRowTilesBf16) {
    const int left = n_row_tiles - first;
    const int n = left < kMaxRowTilesBf16 ? left : kMaxRowTilesBf16;
    if (n == 1) {
      multiply_bf16_row_tile(args, first * height, height);
    } else {
      multiply_bf16_row_tiles(args, first, n, height);
    }
  }
}

// This table uses only the vector table's other slots, not its integer products.
struct NoDots {
  static constexpr int kMaxRows = 1;
  static constexpr int kFixedWayRows = 1;
  static constexpr std::size_t kOneRowAhead = kPrefetchBytes / kMaxStreams;
  template <class Codes, int kParts, int R, int T, class Inputs, class Use>
  static void dots(const GroupWeights&, const Inputs&, const Use&) {}
};
static_assert(GroupDots<NoDots, Vector>);

struct NoWords : WordNumbers {
  static constexpr int kRows = 1;
  static constexpr int vectors(int) { return 1; }
  template <int R, int T, class Rows, class Ahead, class Use>
  static void dots(const std::byte*, std::size_t, int, const Rows&, const Ahead&, const Use&) {}
};
static_assert(WordDots<NoWords, Vector>);

template <class... Formats>
constexpr void set_stored_matmuls(KernelTable& table, FormatList<Formats...>) {
  ((table.formats[static_cast<int>(Formats::kKind)].matmul = matmul_stored_amx<Formats::kKind>),
   ...);
}

constexpr KernelTable make_amx_table() {
  KernelTable table = make_table<Vector, NoDots, NoWords>("amx");
  table.attend[static_cast<int>(KvKind::int8)] = attend_int8_amx;
  table.formats[static_cast<int>(WeightKind::bf16)] = {ActivationForm::bf16, tile_bytes_bf16_pairs,
                                                       pack_tile_bf16_pairs, matmul_bf16_amx};
  table.formats[static_cast<int>(WeightKind::int8)].matmul = matmul_int8_amx;
  table.formats[static_cast<int>(WeightKind::int4)].matmul = matmul_int4_amx;
  set_stored_matmuls(table, StoredFormats{});
  table.round_row = round_row<Vector>;
  table.attend_bf16_pairs = attend_bf16_amx;
  return table;
}

}  // namespace

constinit const KernelTable kAmxTable = make_amx_table();

}  // namespace outrider::kernels
#endif  // __x86_64__
