// Filling packed tiles; done once at load, so plain code for every table.
#include <cstring>

#include "kernels/layout.h"
#include "kernels/tables.h"

namespace outrider::kernels {
namespace {

// [k][16] of whole elements.
template <class Element>
void pack_plain(const TileSource& source, std::size_t tile_bytes, void* tile) {
  std::memset(tile, 0, tile_bytes);
  auto* out = static_cast<Element*>(tile);
  for (int column = 0; column < kTileColumns; ++column) {
    const auto* row = static_cast<const Element*>(source.values[column]);
    if (row == nullptr) continue;
    for (int i = 0; i < source.k; ++i) out[std::size_t{kTileColumns} * i + column] = row[i];
  }
}

void put_f16(std::byte* tile, std::size_t offset, int column, std::uint16_t bits) {
  std::memcpy(tile + offset + std::size_t{2} * column, &bits, 2);
}

// Place of element `index` (0..31) of a group among its quads.
std::size_t quad_place(int index, int column) {
  return static_cast<std::size_t>(index / kQuad * kRowBytes + column * kQuad + index % kQuad);
}

}  // namespace

std::size_t tile_bytes_f32(int k) { return packed_tile_bytes(WeightKind::f32, k); }
std::size_t tile_bytes_bf16(int k) { return packed_tile_bytes(WeightKind::bf16, k); }
std::size_t tile_bytes_bf16_pairs(int k) { return packed_pairs_bytes(k); }
std::size_t tile_bytes_int8(int k) { return packed_tile_bytes(WeightKind::int8, k); }
std::size_t tile_bytes_int4(int k) { return packed_tile_bytes(WeightKind::int4, k); }

void pack_tile_f32(const TileSource& source, void* tile) {
  pack_plain<float>(source, tile_bytes_f32(source.k), tile);
}

void pack_tile_bf16(const TileSource& source, void* tile) {
  pack_plain<std::uint16_t>(source, tile_bytes_bf16(source.k), tile);
}

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

void pack_tile_int8(const TileSource& source, void* tile) {
  auto* out = static_cast<std::byte*>(tile);
  std::memset(out, 0, tile_bytes_int8(source.k));
  for (int column = 0; column < kTileColumns; ++column) {
    const auto* row = static_cast<const std::int8_t*>(source.values[column]);
    if (row == nullptr) continue;
    for (int i = 0; i < source.k; ++i) {
      out[int8_weights_at(i / kGroup) + quad_place(i % kGroup, column)] =
          static_cast<std::byte>(row[i]);
    }
    for (int group = 0; group < group_count(source.k); ++group) {
      put_f16(out, int8_scales_at(group), column, source.scales[column][group]);
    }
  }
}

void pack_tile_int4(const TileSource& source, void* tile) {
  auto* out = static_cast<std::byte*>(tile);
  std::memset(out, 0, tile_bytes_int4(source.k));
  for (int column = 0; column < kTileColumns; ++column) {
    const auto* row = static_cast<const std::uint8_t*>(source.values[column]);
    if (row == nullptr) continue;
    for (int i = 0; i < source.k; ++i) {
      const int index = i % kGroup;
      const bool high = index >= kGroup / 2;
      out[int4_weights_at(i / kGroup) + quad_place(index % (kGroup / 2), column)] |=
          static_cast<std::byte>(row[i] << (high ? 4 : 0));
    }
    for (int group = 0; group < group_count(source.k); ++group) {
      put_f16(out, int4_scales_at(group), column, source.scales[column][group]);
      put_f16(out, int4_minimums_at(group), column, source.minimums[column][group]);
    }
  }
}

}  // namespace outrider::kernels
