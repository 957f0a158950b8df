// Attention by matrix units (Intel AMX), for the amx table: sixteen walks at a time, what fewer
// leave free multiplied too, with no effect. A row of sums depends on its own row of inputs alone.
#if defined(__x86_64__)
#include "kernels/algorithms.h"
#include "kernels/bf16_attention.h"
#include "kernels/kv_layout.h"
#include "kernels/tile_shape.h"

namespace outrider::kernels {
namespace {

constexpr int kTileRows = 16;

// sums (16, T, 16) += rows times T vectors of columns, sixteen rows of cells at a time.
struct Bf16Tiles {
  static constexpr KvKind kKind = KvKind::bf16;
  static constexpr int kRows = kTileRows;
  static constexpr int vectors(int) { return 4; }  // tiles of sums

  template <int R, int T, class Rows, class Ahead>
  static void dots(const std::byte* cells, std::size_t row_bytes, int n, const Rows& rows,
                   const Ahead& ahead, Vector (&dots)[R][T]) {
    // Loading a tile is an instruction of which the compiler does not know that it reads memory.
    __asm__ volatile("" ::: "memory");
    _tile_zero(0);
    if constexpr (T > 1) _tile_zero(1);
    if constexpr (T > 2) _tile_zero(2);
    if constexpr (T > 3) _tile_zero(3);
    int i = 0;
    for (; i + kNumbers <= n; i += kNumbers) {
      const std::size_t at = static_cast<std::size_t>(i / 2) * row_bytes;
      for (int row = 0; row < kTileRows; ++row) {
        ahead.template row<T>(at + static_cast<std::size_t>(row) * row_bytes);
      }
      multiply<T>(cells + at, row_bytes, rows, i);
    }
    if (i < n) {
      // Fewer than a tile takes, and zeros; of half a pair only that half.
      alignas(kLineBytes) std::byte rest[kTileRows][T * kLineBytes] = {};
      for (int row = 0; i + 2 * row < n; ++row) {
        const std::byte* from = cells + static_cast<std::size_t>(i / 2 + row) * row_bytes;
        const __m512i kept = _mm512_set1_epi32(i + 2 * row + 1 < n ? -1 : 0xffff);
        for (std::size_t t = 0; t < T; ++t) {
          _mm512_storeu_si512(&rest[row][t * kLineBytes],
                              _mm512_and_si512(_mm512_loadu_si512(from + t * kLineBytes), kept));
        }
      }
      __asm__ volatile("" ::: "memory");
      multiply<T>(rest[0], sizeof rest[0], rows, i);
    }
    Vector all[kTileRows][T];
    constexpr std::size_t kRowBytesOfSums = sizeof all[0];
    _tile_stored(0, &all[0][0], kRowBytesOfSums);
    if constexpr (T > 1) _tile_stored(1, &all[0][1], kRowBytesOfSums);
    if constexpr (T > 2) _tile_stored(2, &all[0][2], kRowBytesOfSums);
    if constexpr (T > 3) _tile_stored(3, &all[0][3], kRowBytesOfSums);
    for (int r = 0; r < R; ++r) {
      for (int t = 0; t < T; ++t) dots[r][t] = all[r][t];
    }
  }

 private:
  static constexpr int kNumbers = 2 * kTileRows;  // of a row, at a time

  template <int T>
  [[gnu::always_inline]] static void multiply(const std::byte* cells, std::size_t row_bytes,
                                              const StridedRows<std::uint16_t>& rows, int i) {
    _tile_loadd(6, rows.first + i, static_cast<std::size_t>(rows.stride) * 2);
    _tile_loadd(4, cells, row_bytes);
    _tile_dpbf16ps(0, 6, 4);
    if constexpr (T > 1) {
      _tile_loadd(5, cells + kLineBytes, row_bytes);
      _tile_dpbf16ps(1, 6, 5);
    }
    if constexpr (T > 2) {
      _tile_loadd(4, cells + 2 * kLineBytes, row_bytes);
      _tile_dpbf16ps(2, 6, 4);
    }
    if constexpr (T > 3) {
      _tile_loadd(5, cells + 3 * kLineBytes, row_bytes);
      _tile_dpbf16ps(3, 6, 5);
    }
  }
};

}  // namespace

void attend_bf16_amx(const AttendArgs& args) {
  const TileShape shape(kTileRows, kLineBytes, kTileRows);
  attend_with<Vector, Bf16Tiles, Bf16Numbers<Vector, Bf16Tiles>>(args);
}

}  // namespace outrider::kernels
#endif  // __x86_64__
