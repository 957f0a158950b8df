// SPDX-License-Identifier: Apache-2.0
// Fills packed tiles; called only while loading, so plain code serves all tables.
#include <cstring>

#include "kernels/formats/block_formats.h"
#include "kernels/layout.h"
#include "kernels/tables.h"

namespace outrider::kernels {
namespace {

// [k][16] of whole elements.
template <class Element>
void pack_plain(const TileSource& source, void* tile) {
  std::memset(tile, 0, plain_tile_bytes<Element>(source.k));
  auto* out = static_cast<Element*>(tile);
  for (int column = 0; column < kTileColumns; ++column) {
    const auto* row = static_cast<const Element*>(source.values[column]);
    if (row == nullptr) continue;
    for (int i = 0; i < source.k; ++i) out[std::size_t{kTileColumns} * i + column] = row[i];
  }
}

template <class Format>
void pack_blocks(const TileSource& source, void* tile) {
  auto* out = static_cast<std::byte*>(tile);
  std::memset(out, 0, Format::tile_bytes(source.k));
  for (int column = 0; column < kTileColumns; ++column) {
    const auto* codes = static_cast<const std::uint8_t*>(source.values[column]);
    if (codes == nullptr) continue;
    const RowNumbers& numbers = source.numbers[column];
    for (int i = 0; i < source.k; ++i) {
      const int index = i % kGroup;
      Format::Codes::put(out + Format::weights_at(i / kGroup), index / kQuad,
                         column * kQuad + index % kQuad, codes[i]);
    }
    for (int group = 0; group < group_count(source.k); ++group) {
      Format::Scales::put_group(out + Format::scales_at(group), column, numbers, group);
      if (group % Format::kGroups != 0) continue;
      Format::Scales::put_block(out + Format::block_scales_at(group), column, numbers,
                                group / Format::kGroups);
    }
  }
}

}  // namespace

template <>
std::size_t tile_bytes<WeightKind::f32>(int k) {
  return plain_tile_bytes<float>(k);
}
template <>
std::size_t tile_bytes<WeightKind::bf16>(int k) {
  return plain_tile_bytes<std::uint16_t>(k);
}
template <>
void pack_tile<WeightKind::f32>(const TileSource& source, void* tile) {
  pack_plain<float>(source, tile);
}
template <>
void pack_tile<WeightKind::bf16>(const TileSource& source, void* tile) {
  pack_plain<std::uint16_t>(source, tile);
}

template <>
std::size_t tile_bytes<Int8::kKind>(int k) {
  return Int8::tile_bytes(k);
}
template <>
void pack_tile<Int8::kKind>(const TileSource& source, void* tile) {
  pack_blocks<Int8>(source, tile);
}

template <>
std::size_t tile_bytes<Int4::kKind>(int k) {
  return Int4::tile_bytes(k);
}
template <>
void pack_tile<Int4::kKind>(const TileSource& source, void* tile) {
  pack_blocks<Int4>(source, tile);
}

template <WeightKind kKind>
std::size_t tile_bytes(int k) {
  return FormatOf<kKind>::tile_bytes(k);
}
template <WeightKind kKind>
void pack_tile(const TileSource& source, void* tile) {
  pack_blocks<FormatOf<kKind>>(source, tile);
}
template std::size_t tile_bytes<WeightKind::q2_k>(int);
template void pack_tile<WeightKind::q2_k>(const TileSource&, void*);
template std::size_t tile_bytes<WeightKind::q3_k>(int);
template void pack_tile<WeightKind::q3_k>(const TileSource&, void*);
template std::size_t tile_bytes<WeightKind::q4_k>(int);
template void pack_tile<WeightKind::q4_k>(const TileSource&, void*);
template std::size_t tile_bytes<WeightKind::q5_0>(int);
template void pack_tile<WeightKind::q5_0>(const TileSource&, void*);
template std::size_t tile_bytes<WeightKind::q5_1>(int);
template void pack_tile<WeightKind::q5_1>(const TileSource&, void*);
template std::size_t tile_bytes<WeightKind::q5_k>(int);
template void pack_tile<WeightKind::q5_k>(const TileSource&, void*);
template std::size_t tile_bytes<WeightKind::q6_k>(int);
template void pack_tile<WeightKind::q6_k>(const TileSource&, void*);
template std::size_t tile_bytes<WeightKind::iq4_nl>(int);
template void pack_tile<WeightKind::iq4_nl>(const TileSource&, void*);
template std::size_t tile_bytes<WeightKind::iq4_xs>(int);
template void pack_tile<WeightKind::iq4_xs>(const TileSource&, void*);
template std::size_t tile_bytes<WeightKind::mxfp4>(int);
template void pack_tile<WeightKind::mxfp4>(const TileSource&, void*);

std::size_t tile_bytes_bf16_pairs(int k) { return packed_pairs_bytes(k); }

void pack_tile_bf16_pairs(const TileSource& source, void* tile) {
  std::memset(tile, 0, tile_bytes_bf16_pairs(source.k));
  auto* out = static_cast<std::uint16_t*>(tile);
  for (int column = 0; column < kTileColumns; ++column) {
    const auto* row = static_cast<const std::uint16_t*>(source.values[column]);
    if (row == nullptr) continue;
    for (int i = 0; i < source.k; ++i) {
      out[std::size_t{2 * kTileColumns} * (i / 2) + 2 * column + i % 2] = row[i];
    }
  }
}

}  // namespace outrider::kernels
