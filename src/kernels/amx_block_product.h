// SPDX-License-Identifier: Apache-2.0
// Products on machines with matrix units (Intel AMX: INT8 tiles) with weights in blocks of 256
// (formats/block_formats.h, WholeBlockFormats). Internal linkage, as everything compiled with
// instruction-set flags.
//
// The sum of s * dot over a block is one product if s is multiplied into the weights. s * w takes
// up to 13 bits, so it is split into two planes of bytes: s * w = 256 * high + low, low unsigned.
// 64 elements of both planes are two instructions, and nothing leaves the tiles before the block's
// end. If codes and scales are unsigned, scales have six bits and codes few, the planes are the
// code times the scale's upper and lower three bits: s * w = 8 * high + low. Bytes of 16-bit lanes
// then multiply side by side without carry. If scaled group by group instead, the contents of the
// tiles must be stored and loaded again for every 32 elements. (Qwen2.5-Coder 1.5B, Q4_K_M, two AMX
// cores, whole passes, milliseconds by groups and by blocks: 16 rows 74 and 62, 32 rows 126 and 91,
// 64 rows 243 and 157.)
#ifndef OUTRIDER_KERNELS_AMX_BLOCK_PRODUCT_H_
#define OUTRIDER_KERNELS_AMX_BLOCK_PRODUCT_H_

#include <cstddef>
#include <cstdint>

#include "kernels/formats/block_formats.h"
#include "kernels/products.h"
#include "kernels/vectors/bytes512.h"
#include "kernels/vectors/tile_shape.h"
#include "kernels/vectors/vector512.h"

namespace outrider::kernels {
namespace {

// Row tiles processed together over a block's planes: 256 rows, whose inputs of a block are 64 KB.
constexpr int kMaxBlockRowTiles = 16;
// With more row tiles than these, kTilesTogether tiles of weights are processed together, block by
// block. Inputs that exceed the L2 cache (256 rows of 8,960 elements are 2.3 MB) are then read once
// for all of them. (Qwen2.5-Coder 1.5B, Q4_K_M, two AMX cores, a prompt of 512 tokens, five turns:
// one tile after the other 390 to 409 tokens a second, together 411 to 442.)
constexpr int kMaxRowTilesOfOneTile = 4;
constexpr int kTilesTogether = 4;

// R: the height of a row tile, 4, 8, 12 or 16.
template <class Format, int R>
class BlockTileProduct {
 public:
  BlockTileProduct(const MatmulArgs& args, int first_row_tile, int n_row_tiles)
      : args_(args), first_row_tile_(first_row_tile), n_row_tiles_(n_row_tiles) {}

  void run() {
    if (n_row_tiles_ > kMaxRowTilesOfOneTile) {
      for_tiles_in_streams<kTilesTogether>(
          args_, [this]<int T>(int tile, int apart) { run_tiles<T>(tile, apart); });
    } else {
      for_tiles_in_streams<1>(args_,
                              [this]<int T>(int tile, int apart) { run_tiles<T>(tile, apart); });
    }
  }

 private:
  using Codes = typename Format::Codes;
  using Scales = typename Format::Scales;
  static constexpr int kParts = Scales::kParts;
  static constexpr int kSteps = kBlock / kBlockRun;
  static constexpr int kPairs = kBlockGroups * kParts / 2;  // of parts, whose minimums are adjacent
  // The offset of codes. Signed bytes are used with their sign bit flipped, so theirs is 128.
  static constexpr int kOffset = Codes::kSigned ? 128 : Codes::kOffset;
  // Weights are prefetched this number of blocks ahead, in streams (PrefetchStreams): 20 KB of
  // q4_k. (1 GB of it over 16, 32 and 64 rows, ms, medians of three turns: 4 blocks 69, 95 and 162,
  // 8 66, 90 and 165, 16 65, 94 and 168.)
  static constexpr int kCalledBlocks = 8;
  static constexpr int kRowsAStep = R / kSteps;  // of scale_rows()
  static constexpr int kGroupPairs = kBlockGroups / 2;
  // Planes of the scale's digits, of this number of bits each.
  static constexpr int kDigitBits = 3;
  static constexpr int kMaxDigit = (1 << kDigitBits) - 1;
  static constexpr bool kByDigits = !Codes::kSigned && kOffset == 0 && !Scales::kSigned &&
                                    Scales::kMaxScale < (1 << (2 * kDigitBits)) &&
                                    Codes::kMax * kMaxDigit <= 255;
  static constexpr int kHighBits = kByDigits ? kDigitBits : 8;  // below the high plane's

  struct Planes {
    alignas(64) std::byte low[kBlock / kQuad][kRowBytes];
    alignas(64) std::byte high[kBlock / kQuad][kRowBytes];
  };
  using Minimums = std::int16_t[kPairs][kTileColumns][2];
  // The tiles' sums of a block.
  struct Sums {
    alignas(64) std::int32_t low[R][kTileColumns];
    alignas(64) std::int32_t high[R][kTileColumns];
  };

  // One or two row tiles of a block of a tile: the work that uses the tile registers together.
  struct Turn {
    const std::byte* weights;
    int block;
    int tile;      // index among those processed together
    int place;     // index among all (block, tile) pairs, in order
    int row_tile;  // and the next one, if there is one
  };

  bool has_two(const Turn& turn) const { return turn.row_tile + 1 < n_row_tiles_; }

  // T tiles, `apart` from one another, block by block.
  template <int T>
  void run_tiles(int tile, int apart) {
    const std::size_t tile_bytes = Format::tile_bytes(args_.k);
    const std::byte* const weights =
        static_cast<const std::byte*>(args_.tiles) + static_cast<std::size_t>(tile) * tile_bytes;
    const auto weights_of = [&](int place) {
      return weights + static_cast<std::size_t>(place % T * apart) * tile_bytes +
             static_cast<std::size_t>(place / T) * Format::kBlockBytes;
    };
    const int n_rows = n_row_tiles_ * R;
    for (int i = 0; i < T * n_rows; ++i) Vector::zero().store(running_[i]);
    unpack(weights);
    const int n_places = blocks_of(args_.k) * T;
    Turn before{};
    int n = 0;  // turns
    for (int place = 0; place < n_places; ++place) {
      const std::byte* const at = weights_of(place);
      const std::byte* const next = place + 1 < n_places ? weights_of(place + 1) : nullptr;
      prefetch_some<T>(at);
      if constexpr (Scales::kMinimums) {
        if (next != nullptr) unpack_minimums(next, minimums_[(place + 1) % 3]);
      }
      for (int row_tile = 0; row_tile < n_row_tiles_; row_tile += 2) {
        const Turn turn{at, place / T, place % T, place, row_tile};
        // Vector work while the tiles are multiplied: unpacks the next planes (with up to two row
        // tiles, two groups in each step), and does a share of the previous turn's scaling.
        const auto vectors = [&]<int kStep>() __attribute__((always_inline)) {
          ahead_.step();
          const int pair = n_row_tiles_ <= 2 ? kStep : row_tile + kStep / 2;
          const bool its_turn = n_row_tiles_ <= 2 || (kStep % 2 == 0 && row_tile < 4);
          if (its_turn && next != nullptr) unpack_groups(next, pair, planes_[(place + 1) % 2]);
          if (n > 0) scale_share<kStep>(before, sums_[(n + 1) % 2]);
        };
        has_two(turn) ? multiply<2>(turn, sums_[n % 2], vectors)
                      : multiply<1>(turn, sums_[n % 2], vectors);
        before = turn;
        ++n;
      }
    }
    in_steps([&]<int kStep>() { scale_share<kStep>(before, sums_[(n + 1) % 2]); });
    for (int t = 0; t < T; ++t) {
      for (int r = 0; r < n_rows; ++r) {
        const int row = first_row_tile_ * R + r;
        if (row >= args_.n_rows) break;
        store_tile(Vector::load(running_[t * n_rows + r]), args_, row, tile + t * apart);
      }
    }
  }

  // Prefetches. Blocks of a tile are contiguous, and so are tiles: the data after a block may be
  // the next tile's. Several tiles are used with many rows, where multiplication takes longer than
  // memory.
  template <int T>
  void prefetch_some(const std::byte* block) {
    constexpr int kCalled = T == 1 ? kCalledBlocks : 1;
    if (n_called_++ % kCalled != 0) return;
    constexpr std::size_t kBytes = kCalled * Format::kBlockBytes;
    ahead_ =
        PrefetchStreams(block + kBytes, kBytes, 0, 1, kCalled * ((n_row_tiles_ + 1) / 2 * kSteps));
  }

  // use.operator()<kStep>() for each step.
  template <class Use>
  [[gnu::always_inline]] static void in_steps(const Use& use) {
    static_assert(kSteps == 4);
    use.template operator()<0>();
    use.template operator()<1>();
    use.template operator()<2>();
    use.template operator()<3>();
  }

  // Writes the sums of a turn's kRowTiles row tiles to sums. After each step calls vectors, whose
  // stores wait in the core's store buffer until the tiles before them are multiplied. The buffer
  // has room for 64 stores, not for the planes' 128. (These instructions alone, 16 rows, ns: the
  // products of a block 44; then 64 stores 44 to 46; 128 stores 60 to 99, a quarter after each step
  // 40 to 44.)
  template <int kRowTiles, class Vectors>
  void multiply(const Turn& turn, Sums (&sums)[2], const Vectors& vectors) {
    const Planes& planes = planes_[turn.place % 2];
    const auto slots = static_cast<std::size_t>(args_.slots);
    const std::size_t row = static_cast<std::size_t>((first_row_tile_ + turn.row_tile) * R);
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (kRowTiles == 2) {
      _tile_zero(2);
      _tile_zero(3);
    }
    in_steps([&]<int kStep>() __attribute__((always_inline)) {
      const std::size_t run = static_cast<std::size_t>(turn.block * kSteps + kStep) * slots + row;
      const std::int8_t* inputs = args_.block_values + run * kBlockRun;
      // The compiler does not know that loading a tile reads memory.
      __asm__ volatile("" ::: "memory");
      _tile_loadd(4, planes.low[kStep * (kBlockRun / kQuad)], kRowBytes);
      _tile_loadd(5, planes.high[kStep * (kBlockRun / kQuad)], kRowBytes);
      _tile_loadd(6, inputs, kBlockRun);
      _tile_dpbsud(0, 6, 4);
      if constexpr (kByDigits) {
        _tile_dpbsud(1, 6, 5);
      } else {
        _tile_dpbssd(1, 6, 5);
      }
      if constexpr (kRowTiles == 2) {
        _tile_loadd(7, inputs + R * kBlockRun, kBlockRun);
        _tile_dpbsud(2, 7, 4);
        if constexpr (kByDigits) {
          _tile_dpbsud(3, 7, 5);
        } else {
          _tile_dpbssd(3, 7, 5);
        }
      }
      __asm__ volatile("" ::: "memory");  // keeps the stores of vectors after it
      vectors.template operator()<kStep>();
    });
    _tile_stored(0, sums[0].low, kTileColumns * 4);
    _tile_stored(1, sums[0].high, kTileColumns * 4);
    if constexpr (kRowTiles == 2) {
      _tile_stored(2, sums[1].low, kTileColumns * 4);
      _tile_stored(3, sums[1].high, kTileColumns * 4);
    }
  }

  // A column's byte for each element of its quad.
  static __m512i for_quads(const std::byte* of_columns) {
    const __m512i places =
        _mm512_set_epi32(0x0f0f0f0f, 0x0e0e0e0e, 0x0d0d0d0d, 0x0c0c0c0c, 0x0b0b0b0b, 0x0a0a0a0a,
                         0x09090909, 0x08080808, 0x07070707, 0x06060606, 0x05050505, 0x04040404,
                         0x03030303, 0x02020202, 0x01010101, 0x00000000);
    const __m128i row = _mm_loadu_si128(reinterpret_cast<const __m128i*>(of_columns));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(row), places);
  }

  // The first block.
  void unpack(const std::byte* at) {
    for (int pair = 0; pair < kGroupPairs; ++pair) unpack_groups(at, pair, planes_[0]);
    if constexpr (Scales::kMinimums) unpack_minimums(at, minimums_[0]);
  }

  // Unpacks two groups. (Inlined it would be emitted in 16 places: four steps, one and two row
  // tiles, one and several tiles of weights; and once more for the first block.)
  [[gnu::noinline]] static void unpack_groups(const std::byte* at, int pair, Planes& planes) {
#pragma GCC unroll 2
    for (int group = 2 * pair; group < 2 * pair + 2; ++group) {
      unpack_group(at + Format::weights_at(group), at + Format::scales_at(group), group, planes);
    }
  }

  [[gnu::always_inline]] static void unpack_group(const std::byte* codes, const std::byte* of_group,
                                                  int group, Planes& planes) {
    if constexpr (kByDigits) {
      unpack_digits(codes, of_group, group, planes);
    } else {
      unpack_bytes(codes, of_group, group, planes);
    }
  }

  // A column's scale is repeated over the bytes of its quad; the digits are in the lower byte of
  // two.
  [[gnu::always_inline]] static void unpack_digits(const std::byte* codes,
                                                   const std::byte* of_group, int group,
                                                   Planes& planes) {
    const __m512i digit = _mm512_set1_epi16(kMaxDigit);
    for (int part = 0; part < kParts; ++part) {
      const __m512i scales = for_quads(of_group + static_cast<std::size_t>(part) * kByteOfEach);
      const __m512i low = _mm512_and_si512(scales, digit);
      const __m512i high = _mm512_and_si512(_mm512_srli_epi16(scales, kDigitBits), digit);
      constexpr int kOfPart = kQuads / kParts;
#pragma GCC unroll 8
      for (int quad = part * kOfPart; quad < (part + 1) * kOfPart; ++quad) {
        const __m512i bytes = Codes::template quad<Bytes512>(codes, quad).bytes;
        const int row = group * kQuads + quad;
        _mm512_store_si512(planes.low[row], _mm512_mullo_epi16(bytes, low));
        _mm512_store_si512(planes.high[row], _mm512_mullo_epi16(bytes, high));
      }
    }
  }

  static void unpack_bytes(const std::byte* codes, const std::byte* of_group, int group,
                           Planes& planes) {
    const __m512i low_bytes = _mm512_set1_epi16(0xff);
    for (int part = 0; part < kParts; ++part) {
      const __m512i scales = for_quads(of_group + static_cast<std::size_t>(part) * kByteOfEach);
      // One product of the pair that the instruction adds is 0.
      const __m512i of_even = _mm512_and_si512(scales, low_bytes);
      const __m512i of_odd = _mm512_andnot_si512(low_bytes, scales);
      const __m512i off = _mm512_mullo_epi16(_mm512_srai_epi16(_mm512_slli_epi16(scales, 8), 8),
                                             _mm512_set1_epi16(kOffset));
      constexpr int kOfPart = kQuads / kParts;
#pragma GCC unroll 8
      for (int quad = part * kOfPart; quad < (part + 1) * kOfPart; ++quad) {
        __m512i bytes = Codes::template quad<Bytes512>(codes, quad).bytes;
        if constexpr (Codes::kSigned) bytes = _mm512_xor_si512(bytes, _mm512_set1_epi8(-128));
        __m512i even = _mm512_maddubs_epi16(bytes, of_even);
        __m512i odd = _mm512_maddubs_epi16(bytes, of_odd);
        if constexpr (kOffset != 0) {
          even = _mm512_sub_epi16(even, off);
          odd = _mm512_sub_epi16(odd, off);
        }
        // (low_bytes & a) | (~low_bytes & b), as a truth table.
        constexpr int kSelect = 0xca;
        const int row = group * kQuads + quad;
        _mm512_store_si512(
            planes.low[row],
            _mm512_ternarylogic_epi32(low_bytes, even, _mm512_slli_epi16(odd, 8), kSelect));
        _mm512_store_si512(
            planes.high[row],
            _mm512_ternarylogic_epi32(low_bytes, _mm512_srli_epi16(even, 8), odd, kSelect));
      }
    }
  }

  static void unpack_minimums(const std::byte* block, Minimums& pairs) {
    const auto minimums = [block](int part) {
      const std::byte* at = block + Format::scales_at(part / kParts) + Scales::kMinimumsAt +
                            static_cast<std::size_t>(part % kParts) * kByteOfEach;
      return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    };
    for (int pair = 0; pair < kPairs; ++pair) {
      _mm512_store_si512(
          pairs[pair],
          _mm512_or_si512(minimums(2 * pair), _mm512_slli_epi32(minimums(2 * pair + 1), 16)));
    }
  }

  // The arguments of scale_rows() for a row tile.
  struct RowsOfBlock {
    const Sums* sums;
    const Minimums* minimums;
    const std::byte* of_block;
    const std::int16_t* x_sums;
    const float* x_scales;
    float (*running)[kTileColumns];
  };

  // A share of the previous turn's scaling.
  template <int kShare>
  [[gnu::always_inline]] void scale_share(const Turn& turn, const Sums (&sums)[2]) {
    scale<kShare>(turn, turn.row_tile, sums[0]);
    if (has_two(turn)) scale<kShare>(turn, turn.row_tile + 1, sums[1]);
  }

  template <int kShare>
  [[gnu::always_inline]] void scale(const Turn& turn, int row_tile, const Sums& sums) {
    const std::size_t place =
        static_cast<std::size_t>(turn.block) * static_cast<std::size_t>(args_.slots) +
        static_cast<std::size_t>((first_row_tile_ + row_tile) * R);
    const std::int16_t* x_sums = kParts == 2 ? args_.half_sums + place * (2 * kBlockGroups)
                                             : args_.group_sums + place * kBlockGroups;
    scale_rows<kShare>({.sums = &sums,
                        .minimums = &minimums_[turn.place % 3],
                        .of_block = turn.weights + Format::kBlockScalesAt,
                        .x_sums = x_sums,
                        .x_scales = args_.block_scales + place,
                        .running = running_ + (turn.tile * n_row_tiles_ + row_tile) * R});
  }

  // The float combination of a block, in the order that the format's scales fix. It is a separate
  // function so that it has enough registers for its addresses.
  template <int kShare>
  [[gnu::noinline]] static void scale_rows(const RowsOfBlock& of) {
    const Sums& sums = *of.sums;
    const std::int16_t* const x_sums = of.x_sums;
    const float* const x_scales = of.x_scales;
    float(*const running)[kTileColumns] = of.running;
    const Vector of_sums = Scales::template block_scale<Vector>(of.of_block);
    Vector of_minimums = Vector::zero();
    __m512i minimums[kPairs];
    if constexpr (Scales::kMinimums) {
      of_minimums = Scales::template block_minimum<Vector>(of.of_block);
      for (int pair = 0; pair < kPairs; ++pair) {
        minimums[pair] = _mm512_load_si512((*of.minimums)[pair]);
      }
    }
#pragma GCC unroll 4
    for (int r = kShare * kRowsAStep; r < (kShare + 1) * kRowsAStep; ++r) {
      const __m512i low = _mm512_load_si512(sums.low[r]);
      const __m512i high = _mm512_load_si512(sums.high[r]);
      const __m512i whole = _mm512_add_epi32(low, _mm512_slli_epi32(high, kHighBits));
      Vector value = Vector{_mm512_cvtepi32_ps(whole)} * of_sums;
      if constexpr (Scales::kMinimums) {
        __m512i minimum_sums = _mm512_setzero_si512();
#pragma GCC unroll 8
        for (int pair = 0; pair < kPairs; ++pair) {
          int two;
          __builtin_memcpy(&two, x_sums + r * (2 * kPairs) + 2 * pair, 4);
          minimum_sums = _mm512_dpwssd_epi32(minimum_sums, minimums[pair], _mm512_set1_epi32(two));
        }
        value = fma(Vector{_mm512_cvtepi32_ps(minimum_sums)}, of_minimums, value);
      }
      fma(value, Vector::broadcast(x_scales[r]), Vector::load(running[r])).store(running[r]);
    }
  }

  const MatmulArgs& args_;
  const int first_row_tile_;
  const int n_row_tiles_;
  int n_called_ = 0;  // blocks
  PrefetchStreams ahead_{nullptr, 0, 0, 1, 1};
  Planes planes_[2];
  // A block's minimums are needed while the next block is multiplied and the one after it is
  // unpacked.
  alignas(64) Minimums minimums_[3];
  Sums sums_[2][2];  // of two turns
  alignas(64) float running_[kTilesTogether * kMaxBlockRowTiles * R][kTileColumns];
};

template <class Format, int R>
void multiply_block_tiles(const MatmulArgs& args) {
  const TileShape shape(R, kBlockRun, kBlockRun / kQuad);
  const int n_row_tiles = row_tiles(args.n_rows);
  for (int first = 0; first < n_row_tiles; first += kMaxBlockRowTiles) {
    const int left = n_row_tiles - first;
    BlockTileProduct<Format, R>(args, first, left < kMaxBlockRowTiles ? left : kMaxBlockRowTiles)
        .run();
  }
}

// By tiles, for any number of rows.
template <class Format>
void matmul_blocks_by_tiles(const MatmulArgs& args) {
  with_row_tile_height(args.n_rows, [&args]<int R>() { multiply_block_tiles<Format, R>(args); });
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_AMX_BLOCK_PRODUCT_H_
