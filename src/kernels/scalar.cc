// SPDX-License-Identifier: Apache-2.0
// The table for any machine, and the reference that the others must equal bit for bit.
#include "kernels/algorithms.h"
#include "kernels/vectors/vector_scalar.h"

namespace outrider::kernels {
namespace {

// One byte, as a vector for formats/codes.h.
struct Byte {
  unsigned value;

  static Byte load(const std::byte* p) { return {static_cast<unsigned char>(*p)}; }
  template <int kBits>
  static Byte low_bits() {
    return {(1U << kBits) - 1U};
  }
  static Byte shift_right(Byte b, int n) { return {b.value >> n}; }
  static Byte shift_left(Byte b, int n) { return {b.value << n}; }
  static Byte lookup(const std::int8_t (&table)[16], Byte b) {
    return {static_cast<std::uint8_t>(table[b.value])};
  }
};
Byte operator&(Byte a, Byte b) { return {a.value & b.value}; }
Byte operator|(Byte a, Byte b) { return {a.value | b.value}; }

struct ScalarDots {
  static constexpr int kMaxRows = 1;
  static constexpr int kFixedWayRows = 1;
  static constexpr std::size_t kOneRowAhead = kPrefetchBytes;

  template <class Codes, int kParts, int R, class Inputs>
  static void dots(const std::byte* weights, const Inputs& inputs, Vector (&dots)[kParts][R]) {
    constexpr int kOfPart = kGroup / kParts;
    for (int r = 0; r < R; ++r) {
      for (int part = 0; part < kParts; ++part) {
        for (int column = 0; column < kTileColumns; ++column) {
          std::int32_t sum = 0;
          for (int i = part * kOfPart; i < (part + 1) * kOfPart; ++i) {
            const unsigned byte =
                Codes::template quad<Byte>(weights + column * kQuad + i % kQuad, i / kQuad).value;
            const int weight = Codes::kSigned ? int{static_cast<std::int8_t>(byte)}
                                              : static_cast<int>(byte) - Codes::kOffset;
            sum += weight * inputs.row(r)[i];
          }
          dots[part][r].lane[column] = static_cast<float>(sum);
        }
      }
    }
  }
};
static_assert(OneTileDots<ScalarDots, Vector>);

struct ScalarWords : WordNumbers {
  static constexpr int kRows = 1;
  static constexpr int vectors(int) { return 1; }

  template <int R, int T, class Rows, class Ahead, class Use>
  static void dots(const std::byte* cells, std::size_t row_bytes, int n, const Rows& rows,
                   const Ahead&, const Use& use) {
    static_assert(R == 1 && T == 1);
    constexpr int kPlaces[] = {0, 2, 1, 3};  // of a cell's elements (kv_layout.h)
    Vector dots;
    for (int column = 0; column < kLanes; ++column) {
      std::int32_t sum = 0;
      for (int i = 0; i < n; ++i) {
        const std::byte* cell = cells + static_cast<std::size_t>(i / 4) * row_bytes + column * 4;
        sum += static_cast<std::int8_t>(cell[kPlaces[i % 4]]) * rows.at(0)[i];
      }
      dots.lane[column] = static_cast<float>(sum);
    }
    use(0, 0, dots);
  }
};
static_assert(WordDots<ScalarWords, Vector>);

}  // namespace

constinit const KernelTable kScalarTable =
    make_table<Vector, TileByTile<Vector, ScalarDots>, ScalarWords>("scalar");

}  // namespace outrider::kernels
