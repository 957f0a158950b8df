// SPDX-License-Identifier: Apache-2.0
// The integer dot products of products with quantised weights: what the algorithms of products.h
// require of an instruction set's (by convention Dots), member by member, and what they give it.
//
// Dots are exact: of a group's 16 outputs with each row's 32 quantised inputs, or, in two parts,
// with each half of these. They are given as floats, below 2^24 in size. Codes are one of
// formats/codes.h.
//
// Internal linkage, as everything compiled with instruction-set flags.
#ifndef OUTRIDER_KERNELS_GROUP_DOTS_H_
#define OUTRIDER_KERNELS_GROUP_DOTS_H_

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "kernels/formats/codes.h"
#include "kernels/table.h"
#include "kernels/vectors/float_vector.h"

namespace outrider::kernels {
namespace {

// The quantised inputs of R adjacent rows at one group.
struct GroupInputs {
  const std::int8_t* quantized;  // (R, 32)
  const std::int32_t* sums;      // (R)

  const std::int8_t* row(int r) const { return quantized + r * kGroup; }
  // Of the one part: the whole group.
  template <int kParts>
  std::int32_t sum(int r, int /*part*/) const {
    static_assert(kParts == 1);
    return sums[r];
  }
};

// One group of several tiles' weights.
struct GroupWeights {
  const std::byte* first;
  std::size_t apart_bytes;

  const std::byte* tile(int t) const { return first + static_cast<std::size_t>(t) * apart_bytes; }
};

// The quantised inputs of R adjacent rows at one group of a block.
struct BlockInputs {
  const std::int8_t* values;  // of row r at 64 r: 32
  const std::int16_t* sums;   // of the parts of row r's block, from this group on
  int n_sums;                 // of a block

  const std::int8_t* row(int r) const { return values + r * kBlockRun; }
  template <int kParts>
  std::int32_t sum(int r, int part) const {
    return sums[r * n_sums + part];
  }
};

// For any number of rows (kFixedWayRows).
constexpr int kAnyRows = 1 << 30;

template <class Dots>
concept DotRowCounts = requires {
  requires Positive<Dots::kMaxRows>;       // rows at a time
  requires Positive<Dots::kFixedWayRows>;  // with more, PrefetchStreams instead of FixedWayAhead
  requires Positive<Dots::kOneRowAhead>;   // the distance of that for one row, in bytes
};

// What dots are given to: those of one tile, of all parts and of R rows.
template <class V>
struct UseOfDots {
  template <int kParts, int R>
  void operator()(int tile, const V (&dots)[kParts][R]) const;
};

// dots<Codes, kParts, R, T>(weights, inputs, use): of R rows with T tiles, R * T <= kMaxRows.
template <class Dots, class V>
concept GroupDots = DotRowCounts<Dots> &&
    requires(const GroupWeights& weights, const GroupInputs& group, const BlockInputs& block,
             const UseOfDots<V>& use) {
  Dots::template dots<WholeBytes, 1, Dots::kMaxRows, 1>(weights, group, use);
  Dots::template dots<WholeBytes, 1, Dots::kMaxRows, 1>(weights, block, use);
  Dots::template dots<WholeBytes, 2, Dots::kMaxRows, 1>(weights, block, use);
};

// dots<Codes, kParts, R>(weights, inputs, dots): of R rows with one tile, R <= kMaxRows.
template <class Dots, class V>
concept OneTileDots = DotRowCounts<Dots> &&
    requires(const std::byte* weights, const GroupInputs& group, const BlockInputs& block,
             V (&whole)[1][Dots::kMaxRows], V (&halves)[2][Dots::kMaxRows]) {
  Dots::template dots<WholeBytes, 1, Dots::kMaxRows>(weights, group, whole);
  Dots::template dots<WholeBytes, 1, Dots::kMaxRows>(weights, block, whole);
  Dots::template dots<WholeBytes, 2, Dots::kMaxRows>(weights, block, halves);
};

// The dot products of several tiles from those of one, where multiplying several together gains
// nothing.
template <FloatVector V, OneTileDots<V> OneTile>
struct TileByTile {
  static constexpr int kMaxRows = OneTile::kMaxRows;
  static constexpr int kFixedWayRows = OneTile::kFixedWayRows;
  static constexpr std::size_t kOneRowAhead = OneTile::kOneRowAhead;

  template <class Codes, int kParts, int R, int T, class Inputs, class Use>
  static void dots(const GroupWeights& weights, const Inputs& inputs, const Use& use) {
    for (int t = 0; t < T; ++t) {
      V dots[kParts][R];
      OneTile::template dots<Codes, kParts, R>(weights.tile(t), inputs, dots);
      use(t, dots);
    }
  }
};

// The same with at most four rows together, for the formats of files: a function for each of eight
// row counts, ten formats and every kind of prefetch would be most of the library's code.
template <class Dots>
struct FourRows : Dots {
  static constexpr int kMaxRows = Dots::kMaxRows < 4 ? Dots::kMaxRows : 4;
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_GROUP_DOTS_H_
