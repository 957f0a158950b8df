// SPDX-License-Identifier: Apache-2.0
// The configuration of the tile registers of matrix units (Intel AMX), for the files that use them.
// Internal linkage, as everything compiled with instruction-set flags.
#ifndef OUTRIDER_KERNELS_VECTORS_TILE_SHAPE_H_
#define OUTRIDER_KERNELS_VECTORS_TILE_SHAPE_H_

#include <cstdint>

#include "kernels/table.h"
#include "kernels/vectors/vector512.h"

namespace outrider::kernels {
namespace {

// The use of the eight tile registers: 0 to 3 sums, 4 and 5 weights, 6 and 7 inputs. (The
// instructions take their registers as literals.)
struct alignas(64) TileConfig {
  std::uint8_t palette;
  std::uint8_t start_row;
  std::uint8_t reserved[14];
  std::uint16_t row_bytes[16];
  std::uint8_t rows[16];
};

// Configures the tiles for its lifetime. Released at the end: a thread with tiles in use has 8 KB
// more to save at every context switch.
class TileShape {
 public:
  TileShape(int input_rows, int input_row_bytes, int weight_rows) {
    TileConfig config = {};
    config.palette = 1;
    for (int tile = 0; tile < 8; ++tile) {
      const bool weights = tile == 4 || tile == 5;
      const bool inputs = tile == 6 || tile == 7;
      config.rows[tile] = static_cast<std::uint8_t>(weights ? weight_rows : input_rows);
      config.row_bytes[tile] = static_cast<std::uint16_t>(inputs ? input_row_bytes : 64);
    }
    // GCC before 13.2.1 assumes that the instruction reads 8 bytes, and drops the other stores.
    __asm__ volatile("" ::"m"(config));
    _tile_loadconfig(&config);
  }
  TileShape(const TileShape&) = delete;
  TileShape& operator=(const TileShape&) = delete;
  ~TileShape() { _tile_release(); }
};

// Calls use.operator()<R>() with the height R of the tiles of n_rows rows; does nothing for 0 rows.
template <class Use>
void with_row_tile_height(int n_rows, const Use& use) {
  switch (row_tile_height(n_rows)) {
    case 0:
      return;
    case 4:
      return use.template operator()<4>();
    case 8:
      return use.template operator()<8>();
    case 12:
      return use.template operator()<12>();
    default:
      return use.template operator()<16>();
  }
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_VECTORS_TILE_SHAPE_H_
