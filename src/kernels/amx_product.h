// SPDX-License-Identifier: Apache-2.0
// Quantised products on machines with matrix units (Intel AMX: INT8 tiles), for the formats with
// scales of groups (formats/block_formats.h). Internal linkage, as everything compiled with
// instruction-set flags.
//
// 32 products of bytes, one group, are one instruction. The cost is in loading the exact integers
// back and scaling them, row by row. So the next few groups' tiles are multiplied while earlier
// ones are scaled, and neither waits for the other. Codes of fewer bits are unpacked once, for all
// rows.
#ifndef OUTRIDER_KERNELS_AMX_PRODUCT_H_
#define OUTRIDER_KERNELS_AMX_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/formats/block_formats.h"
#include "kernels/products.h"
#include "kernels/vectors/bytes512.h"
#include "kernels/vectors/tile_shape.h"
#include "kernels/vectors/vector512.h"

namespace outrider::kernels {
namespace {

// Row tiles processed together over the weights: inputs and running sums of 64 rows stay in the L2
// cache beside a block of weights.
constexpr int kMaxRowTiles = 4;

// R: the height of a row tile (row_tile_height), 4, 8, 12 or 16.
template <class Format, int R>
class TileProduct {
 public:
  TileProduct(const MatmulArgs& args, int first_row_tile, int n_row_tiles)
      : args_(args), first_row_tile_(first_row_tile), n_row_tiles_(n_row_tiles) {}

  void run() {
    const std::size_t tile_bytes = Format::tile_bytes(args_.k);
    const int n_groups = group_count(args_.k);
    // Weights are prefetched one block ahead; several short tiles count as one block, since streams
    // within one would end before the prefetcher has caught up with them.
    const int together = n_groups < kGroups ? kGroups / n_groups : 1;
    for (int tile = args_.first_tile; tile < args_.first_tile + args_.n_tiles; ++tile) {
      const std::byte* weights =
          static_cast<const std::byte*>(args_.tiles) + static_cast<std::size_t>(tile) * tile_bytes;
      const int part = (tile - args_.first_tile) % together;
      for (int first = 0; first < n_groups; first += kGroups) {
        const int n = n_groups - first < kGroups ? n_groups - first : kGroups;
        const std::size_t at = Format::block_at(first);
        const std::byte* block = weights + at;
        // The bytes of this block, padding included, one whole block further on.
        const std::size_t n_bytes = first + n == n_groups ? tile_bytes - at : kWholeBytes;
        const std::size_t ahead = n_groups < kGroups ? tile_bytes : kWholeBytes;
        const Next next =
            together == 1 ? Next{block + ahead, n_bytes, 0, 1}
                          : Next{weights + static_cast<std::size_t>(together - part) * tile_bytes,
                                 static_cast<std::size_t>(together) * tile_bytes, part, together};
        run_block(block, tile, first, n, next);
      }
    }
  }

 private:
  using Codes = typename Format::Codes;
  using Scales = typename Format::Scales;
  // Signed bytes are multiplied in place.
  static constexpr bool kUnpacks = !std::is_same_v<Codes, WholeBytes>;

  // Groups whose dots are in flight while an earlier group's are scaled. The latency through tiles
  // and memory is long (52 cycles and as much again), so neither work waits for the other.
  static constexpr int kAhead = 3;
  static constexpr int kDots = kAhead + 1;
  // The number of groups that the first row tile unpacks ahead of scaling: loading a tile from
  // lines just written would stall.
  static constexpr int kUnpackAhead = 8;
  // Groups that all row tiles process before the next ones. Many, so that inputs and weights are
  // read in long runs from the L2 cache (8 groups of int8: a seventh slower for 32 rows). For
  // formats that are unpacked, few enough that the unpacked bytes leave room for inputs in the L1
  // cache.
  static constexpr int kGroups = kUnpacks ? 32 : 64;
  static_assert(kGroups % Format::kGroups == 0, "whole blocks of the format");
  static constexpr std::size_t kWholeBytes = kGroups / Format::kGroups * Format::kBlockBytes;

  // The weights to prefetch during a block, divided into shares.
  struct Next {
    const std::byte* weights;
    std::size_t n_bytes;
    int share;
    int n_shares;
  };

  // The addresses of a row tile's operands of a block. Values in registers, not members: data in
  // memory is read again after every instruction that stores a tile.
  struct Place {
    const std::byte* weights;
    const std::int8_t* inputs;
    ScaledInputs scaled;
    std::size_t slots;
    int n;                  // groups
    int unpacked;           // of these, by an earlier row tile
    PrefetchStreams ahead;  // for this row tile's share of the next block
  };

  // Processes n groups of a tile from group `first` on, for all row tiles.
  void run_block(const std::byte* block, int tile, int first, int n, const Next& next) {
    const int n_groups = group_count(args_.k);
    for (int row_tile = 0; row_tile < n_row_tiles_; ++row_tile) {
      const int row = (first_row_tile_ + row_tile) * R;
      Vector sums[R];
      for (int r = 0; r < R; ++r) {
        sums[r] = first == 0 ? Vector::zero() : Vector::load(running_[row_tile][r]);
      }
      multiply_and_scale(place_of(block, row, row_tile, first, n, next), sums);
      if (first + n < n_groups) {
        for (int r = 0; r < R; ++r) sums[r].store(running_[row_tile][r]);
      } else {
        for (int r = 0; r < R && row + r < args_.n_rows; ++r) {
          store_tile(sums[r], args_, row + r, tile);
        }
      }
    }
  }

  Place place_of(const std::byte* block, int row, int row_tile, int first, int n,
                 const Next& next) const {
    const auto slots = static_cast<std::size_t>(args_.slots);
    const std::size_t at = static_cast<std::size_t>(first) * slots + static_cast<std::size_t>(row);
    return {
        .weights = block,
        .inputs = args_.quantized + at * kGroup,
        .scaled = {args_.quantized_scales + at, args_.scaled_sums + at},
        .slots = slots,
        .n = n,
        .unpacked = row_tile > 0 ? n : 0,
        .ahead = PrefetchStreams(next.weights, next.n_bytes, next.share * n_row_tiles_ + row_tile,
                                 next.n_shares * n_row_tiles_, n)};
  }

  void multiply_and_scale(const Place& place, Vector (&result)[R]) {
    Vector sums[R];
    for (int r = 0; r < R; ++r) sums[r] = result[r];
    PrefetchStreams ahead = place.ahead;
    for (int i = 0; i < kUnpackAhead; ++i) unpack(place, i);
    // The compiler does not know that loading a tile reads memory.
    __asm__ volatile("" ::: "memory");
    for (int i = 0; i < kAhead && i < place.n; ++i) multiply(place, i, dots_[i % kDots]);
    for (int i = 0; i < place.n; ++i) {
      unpack(place, i + kUnpackAhead);
      if (i + kAhead < place.n) multiply(place, i + kAhead, dots_[(i + kAhead) % kDots]);
      ahead.step();
      scale(place, i, dots_[i % kDots], sums);
    }
    for (int r = 0; r < R; ++r) result[r] = sums[r];
  }

  using Dots = std::int32_t[R][kTileColumns];

  // dots = inputs * weights of the block's i-th group.
  void multiply(const Place& place, int i, Dots& dots) {
    const std::byte* weights = kUnpacks ? unpacked_[i] : place.weights + Format::weights_at(i);
    const std::int8_t* inputs = place.inputs + static_cast<std::size_t>(i) * place.slots * kGroup;
    _tile_loadd(4, weights, kRowBytes);
    _tile_loadd(6, inputs, kGroup);
    _tile_zero(0);
    _tile_dpbssd(0, 6, 4);
    _tile_stored(0, dots, kTileColumns * 4);
  }

  // Unpacks the block's i-th group, if there is one and it is not unpacked yet.
  void unpack(const Place& place, int i) {
    if (!kUnpacks || i < place.unpacked || i >= place.n) return;
    const std::byte* packed = place.weights + Format::weights_at(i);
    std::byte* out = unpacked_[i];
    for (int quad = 0; quad < kQuads; ++quad) {
      Bytes512 bytes = Codes::template quad<Bytes512>(packed, quad);
      if constexpr (Codes::kOffset != 0) {
        bytes.bytes = _mm512_sub_epi8(bytes.bytes, _mm512_set1_epi8(Codes::kOffset));
      }
      _mm512_store_si512(out + quad * kRowBytes, bytes.bytes);
    }
  }

  // The float combination, in the order that the format's scales fix.
  static void scale(const Place& place, int i, const Dots& dots, Vector (&sums)[R]) {
    constexpr int kTogether = R % 8 == 0 ? 8 : 4;
    const std::size_t at = static_cast<std::size_t>(i) * place.slots;
    const std::byte* of_group = place.weights + Format::scales_at(i);
    const std::byte* of_block = place.weights + Format::block_scales_at(i);
#pragma GCC unroll 4
    for (int row = 0; row < R; row += kTogether) {
      Vector exact[kTogether];
      for (int r = 0; r < kTogether; ++r) {
        exact[r] = {_mm512_cvtepi32_ps(_mm512_load_si512(dots[row + r]))};
      }
      const std::size_t first = at + static_cast<std::size_t>(row);
      const ScaledInputs inputs{place.scaled.scales + first, place.scaled.scaled_sums + first};
      Scales::template add<Vector, kTogether>(of_group, of_block, inputs, exact,
                                              [&](int r) -> Vector& { return sums[row + r]; });
    }
  }

  const MatmulArgs& args_;
  const int first_row_tile_;
  const int n_row_tiles_;
  alignas(64) std::int32_t dots_[kDots][R][kTileColumns];
  alignas(64) std::byte unpacked_[kUnpacks ? kGroups : 1][kInt8GroupBytes];
  alignas(64) float running_[kMaxRowTiles][R][kTileColumns];
};

template <class Format, int R>
void multiply_tiles(const MatmulArgs& args) {
  const TileShape shape(R, kGroup, kQuads);
  const int n_row_tiles = row_tiles(args.n_rows);
  for (int first = 0; first < n_row_tiles; first += kMaxRowTiles) {
    const int left = n_row_tiles - first;
    TileProduct<Format, R>(args, first, left < kMaxRowTiles ? left : kMaxRowTiles).run();
  }
}

// By tiles, for any number of rows.
template <class Format>
void matmul_by_tiles(const MatmulArgs& args) {
  with_row_tile_height(args.n_rows, [&args]<int R>() { multiply_tiles<Format, R>(args); });
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_AMX_PRODUCT_H_
