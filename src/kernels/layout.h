// SPDX-License-Identifier: Apache-2.0
// The layout of a packed tile (16 outputs times all of k), shared by all tables.
//
//   f32   [k][16] float                                                        64 k bytes
//   bf16  [k][16] bf16, padded to a whole cache line                           32 k bytes
//   int8  per two groups: 2 x [8][16][4] int8, then 2 x [16] f16 scales        1088 bytes
//   int4  per group: [4][16][4] bytes, [16] f16 scales, [16] f16 minimums      320 bytes
//
// (Blocks as files store them: formats/block_formats.h, of which the last two are cases.)
//
// Quantised weights are in quads: four consecutive k of one output, the operand of one 32-bit lane
// of an integer dot product. A byte of int4 holds quad r in its low and quad r + 4 in its high
// half. A group of int8 is 544 bytes, 8.5 cache lines: groups are in pairs so that every 64-byte
// load stays within one line and the tile is one sequential stream. An odd last group has a zero
// partner.
//
// Internal linkage on purpose: these functions are compiled into files with instruction-set flags,
// and a shared inline function could be linked from any of them.
#ifndef OUTRIDER_KERNELS_LAYOUT_H_
#define OUTRIDER_KERNELS_LAYOUT_H_

#include <cstddef>

#include "kernels/table.h"

namespace outrider::kernels {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr int kQuad = 4;                     // consecutive k of one output
constexpr int kQuads = kGroup / kQuad;       // in one group
constexpr int kRowBytes = kTileColumns * 4;  // one quad of all 16 outputs: one line

constexpr std::size_t kInt8GroupBytes = std::size_t{kGroup} * kTileColumns;
constexpr std::size_t kScaleBytes = std::size_t{kTileColumns} * 2;
constexpr std::size_t kInt8PairBytes = 2 * (kInt8GroupBytes + kScaleBytes);
constexpr std::size_t kInt4GroupBytes = kInt8GroupBytes / 2 + 2 * kScaleBytes;
static_assert(kInt8PairBytes % kLineBytes == 0 && kInt4GroupBytes % kLineBytes == 0);

[[maybe_unused]] constexpr int group_count(int k) { return (k + kGroup - 1) / kGroup; }

[[maybe_unused]] constexpr std::size_t whole_lines(std::size_t n_bytes) {
  return (n_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// For f32 (Element float) or bf16 (Element uint16_t).
template <class Element>
constexpr std::size_t plain_tile_bytes(int k) {
  return whole_lines(static_cast<std::size_t>(k) * kTileColumns * sizeof(Element));
}

// bf16 in pairs along K, (k / 2, 16, 2), whole groups: for instructions that add two products at a
// time.
constexpr std::size_t kPairsGroupBytes = std::size_t{kGroup} * kTileColumns * 2;

[[maybe_unused]] constexpr std::size_t packed_pairs_bytes(int k) {
  return static_cast<std::size_t>(group_count(k)) * kPairsGroupBytes;
}

// Offsets within an int8 tile.
[[maybe_unused]] constexpr std::size_t int8_weights_at(int group) {
  const auto g = static_cast<std::size_t>(group);
  return g / 2 * kInt8PairBytes + g % 2 * kInt8GroupBytes;
}
[[maybe_unused]] constexpr std::size_t int8_scales_at(int group) {
  const auto g = static_cast<std::size_t>(group);
  return g / 2 * kInt8PairBytes + 2 * kInt8GroupBytes + g % 2 * kScaleBytes;
}

// Offsets within an int4 tile.
[[maybe_unused]] constexpr std::size_t int4_weights_at(int group) {
  return static_cast<std::size_t>(group) * kInt4GroupBytes;
}
[[maybe_unused]] constexpr std::size_t int4_scales_at(int group) {
  return int4_weights_at(group) + kInt8GroupBytes / 2;
}
[[maybe_unused]] constexpr std::size_t int4_minimums_at(int group) {
  return int4_scales_at(group) + kScaleBytes;
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_LAYOUT_H_
