// Attention by matrix units (Intel AMX), for the amx table: sixteen walks at a time, what fewer
// leave free multiplied too, with no effect. A row of sums depends on its own row of inputs alone.
#if defined(__x86_64__)
#include "kernels/algorithms.h"
#include "kernels/bf16_attention.h"
#include "kernels/bf16_columns512.h"
#include "kernels/tile_shape.h"

namespace outrider::kernels {
namespace {

constexpr int kTileRows = 16;

// sums (16, T, 16) += rows times T vectors of columns, sixteen pairs at a time.
struct Bf16Tiles : Bf16Columns512 {
  static constexpr int kRows = kTileRows;
  static constexpr int kVectors = 4;  // tiles of sums
  static constexpr int kPairsTogether = 16;

  template <int R, int T>
  static void dots(const std::uint16_t* columns, int stride, int n_pairs, const std::uint16_t* rows,
                   int row_stride, Vector (&dots)[R][T]) {
    // Loading a tile is an instruction of which the compiler does not know that it reads memory.
    __asm__ volatile("" ::: "memory");
    _tile_zero(0);
    if constexpr (T > 1) _tile_zero(1);
    if constexpr (T > 2) _tile_zero(2);
    if constexpr (T > 3) _tile_zero(3);
    const auto column_bytes = static_cast<std::size_t>(stride) * 2;
    const auto row_bytes = static_cast<std::size_t>(row_stride) * 2;
    for (int pair = 0; pair < n_pairs; pair += kPairsTogether) {
      const std::uint16_t* const column = columns + static_cast<std::ptrdiff_t>(pair) * stride;
      _tile_loadd(6, rows + 2 * pair, row_bytes);
      _tile_loadd(4, column, column_bytes);
      _tile_dpbf16ps(0, 6, 4);
      if constexpr (T > 1) {
        _tile_loadd(5, column + 2 * kLanes, column_bytes);
        _tile_dpbf16ps(1, 6, 5);
      }
      if constexpr (T > 2) {
        _tile_loadd(4, column + 4 * kLanes, column_bytes);
        _tile_dpbf16ps(2, 6, 4);
      }
      if constexpr (T > 3) {
        _tile_loadd(5, column + 6 * kLanes, column_bytes);
        _tile_dpbf16ps(3, 6, 5);
      }
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
};

}  // namespace

void attend_bf16_amx(const AttendArgs& args) {
  const TileShape shape(kTileRows, kLineBytes, kTileRows);
  attend_with<LaidSteps<Vector, Bf16Tiles, Bf16Numbers<Vector>>>(args);
}

}  // namespace outrider::kernels
#endif  // __x86_64__
