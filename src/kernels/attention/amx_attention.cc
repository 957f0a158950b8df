// SPDX-License-Identifier: Apache-2.0
// Attention by matrix units (Intel AMX), for the amx table: sixteen rows of inputs at a time. If
// there are fewer, the rest of the tile is multiplied without effect. A row of sums depends on its
// own row of inputs alone.
#if defined(__x86_64__)
#include "kernels/algorithms.h"
#include "kernels/attention/bf16_attention.h"
#include "kernels/attention/int8_attention.h"
#include "kernels/attention/kv_layout.h"
#include "kernels/vectors/tile_shape.h"

namespace outrider::kernels {
namespace {

constexpr int kTileRows = 16;

// Sums 0 to T - 1 += inputs times T adjacent vectors of columns.
template <class Unit, int T>
[[gnu::always_inline]] inline void multiply(const std::byte* cells, std::size_t row_bytes,
                                            const std::byte* inputs, std::size_t input_stride) {
  _tile_loadd(6, inputs, input_stride);
  _tile_loadd(4, cells, row_bytes);
  Unit::add_to_0();
  if constexpr (T > 1) {
    _tile_loadd(5, cells + kLineBytes, row_bytes);
    Unit::add_to_1();
  }
  if constexpr (T > 2) {
    _tile_loadd(4, cells + 2 * kLineBytes, row_bytes);
    Unit::add_to_2();
  }
  if constexpr (T > 3) {
    _tile_loadd(5, cells + 3 * kLineBytes, row_bytes);
    Unit::add_to_3();
  }
}

// sums (16, T, 16) = sixteen rows of inputs, input_stride bytes apart, times T vectors of columns
// of n numbers (kv_layout.h). Processes sixteen rows of cells at a time, which are 64 bytes of a
// row of inputs. Unit defines a cell's contents, the valid part of the last one, and the tile
// instruction.
template <class Unit, int T, class Ahead>
void multiply_tiles(const std::byte* cells, std::size_t row_bytes, int n, const void* inputs,
                    std::size_t input_stride, const Ahead& ahead, float (&sums)[kTileRows][T][16]) {
  // The compiler does not know that loading a tile reads memory.
  __asm__ volatile("" ::: "memory");
  _tile_zero(0);
  if constexpr (T > 1) _tile_zero(1);
  if constexpr (T > 2) _tile_zero(2);
  if constexpr (T > 3) _tile_zero(3);
  const auto* input = static_cast<const std::byte*>(inputs);
  int left = n;
  std::size_t at = 0;
  for (; left >= kTileRows * Unit::kCell; left -= kTileRows * Unit::kCell) {
    multiply<Unit, T>(cells + at, row_bytes, input, input_stride);
    input += kLineBytes;
    for (int row = 0; row < kTileRows; ++row, at += row_bytes) ahead.template row<T>(at);
  }
  if (left > 0) {
    // Less than a tile, padded with zeros.
    alignas(kLineBytes) std::byte rest[kTileRows][T * kLineBytes] = {};
    for (int row = 0; left > 0; ++row, left -= Unit::kCell, at += row_bytes) {
      const __m512i counts = _mm512_set1_epi32(Unit::counts(left));
      const std::byte* const from = cells + at;
      for (std::size_t t = 0; t < T; ++t) {
        _mm512_storeu_si512(&rest[row][t * kLineBytes],
                            _mm512_and_si512(_mm512_loadu_si512(from + t * kLineBytes), counts));
      }
    }
    __asm__ volatile("" ::: "memory");
    multiply<Unit, T>(rest[0], sizeof rest[0], input, input_stride);
  }
  constexpr std::size_t kRowBytesOfSums = sizeof sums[0];
  _tile_stored(0, &sums[0][0], kRowBytesOfSums);
  if constexpr (T > 1) _tile_stored(1, &sums[0][1], kRowBytesOfSums);
  if constexpr (T > 2) _tile_stored(2, &sums[0][2], kRowBytesOfSums);
  if constexpr (T > 3) _tile_stored(3, &sums[0][3], kRowBytesOfSums);
}

// (The instructions take registers as literals.)
struct Bf16Unit {
  static constexpr int kCell = 2;
  // For half a pair, only that half counts.
  static int counts(int left) { return left == 1 ? 0xffff : -1; }

  static void add_to_0() { _tile_dpbf16ps(0, 6, 4); }
  static void add_to_1() { _tile_dpbf16ps(1, 6, 5); }
  static void add_to_2() { _tile_dpbf16ps(2, 6, 4); }
  static void add_to_3() { _tile_dpbf16ps(3, 6, 5); }
};

struct Int8Unit {
  static constexpr int kCell = 4;
  // Anything after the last one is finite and multiplied by zero.
  static int counts(int) { return -1; }

  static void add_to_0() { _tile_dpbssd(0, 6, 4); }
  static void add_to_1() { _tile_dpbssd(1, 6, 5); }
  static void add_to_2() { _tile_dpbssd(2, 6, 4); }
  static void add_to_3() { _tile_dpbssd(3, 6, 5); }
};

// A query state (attention.h) is a row of a tile.
struct Bf16Tiles {
  static constexpr KvKind kKind = KvKind::bf16;
  static constexpr int kRows = kTileRows;
  static constexpr int vectors(int) { return 4; }  // tiles of sums

  template <int R, int T, class Ahead, class Use>
  static void dots(const std::byte* cells, std::size_t row_bytes, int n,
                   const StridedRows<std::uint16_t>& rows, const Ahead& ahead, const Use& use) {
    alignas(kLineBytes) float sums[kTileRows][T][16];
    multiply_tiles<Bf16Unit, T>(cells, row_bytes, n, rows.first,
                                static_cast<std::size_t>(rows.stride) * 2, ahead, sums);
    for (int r = 0; r < R; ++r) {
      for (int t = 0; t < T; ++t) use(r, t, Vector::load(sums[r][t]));
    }
  }
};
static_assert(AttentionDots<Bf16Tiles, Vector, StridedRows<std::uint16_t>>);

// A word is two digits to the base 128, and a query state (attention.h) two rows of a tile: its
// words' high digits, then the low ones.
struct Int8Tiles {
  static constexpr KvKind kKind = KvKind::int8;
  using Number = std::int8_t;
  static constexpr int kTogether = 64;  // bytes in a row of a tile
  static constexpr int kDigits = 2;
  static constexpr int kRows = kTileRows / kDigits;
  static constexpr int vectors(int) { return 4; }

  // words (n) -> their high digits (n), then the low ones, in the order of cells. Words are at most
  // 127 * 128 in magnitude, low digits 0 to 127.
  static void to_digits(const std::int16_t* words, int n, std::int8_t* digits) {
    const __m256i order = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15));
    for (int i = 0; i < n; i += 32) {
      const __m512i word = _mm512_loadu_si512(words + i);
      const __m512i high = _mm512_srai_epi16(word, 7);  // rounded down
      const __m512i low = _mm512_and_si512(word, _mm512_set1_epi16(127));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(digits + i),
                          _mm256_shuffle_epi8(_mm512_cvtepi16_epi8(high), order));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(digits + n + i),
                          _mm256_shuffle_epi8(_mm512_cvtepi16_epi8(low), order));
    }
  }

  template <int R, int T, class Ahead, class Use>
  static void dots(const std::byte* cells, std::size_t row_bytes, int n,
                   const StridedRows<std::int8_t>& rows, const Ahead& ahead, const Use& use) {
    alignas(kLineBytes) float sums[kTileRows][T][16];
    multiply_tiles<Int8Unit, T>(cells, row_bytes, n, rows.first,
                                static_cast<std::size_t>(rows.stride) / kDigits, ahead, sums);
    for (int r = 0; r < R; ++r) {
      for (int t = 0; t < T; ++t) {
        const __m512i high = _mm512_load_si512(sums[2 * r][t]);
        const __m512i low = _mm512_load_si512(sums[2 * r + 1][t]);
        const __m512i sum = _mm512_add_epi32(_mm512_slli_epi32(high, 7), low);
        use(r, t, Vector{_mm512_cvtepi32_ps(sum)});
      }
    }
  }
};
static_assert(WordDots<Int8Tiles, Vector>);

}  // namespace

void attend_bf16_amx(const AttendArgs& args) {
  const TileShape shape(kTileRows, kLineBytes, kTileRows);
  attend_with<Vector, Bf16Tiles, Bf16Numbers<Vector, Bf16Tiles>>(args);
}

void attend_int8_amx(const AttendArgs& args) {
  const TileShape shape(kTileRows, kLineBytes, kTileRows);
  attend_with<Vector, Int8Tiles, Int8Numbers<Vector, Int8Tiles>>(args);
}

}  // namespace outrider::kernels
#endif  // __x86_64__
