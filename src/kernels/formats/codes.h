// SPDX-License-Identifier: Apache-2.0
// The layout of the codes of a group of quantised weights (16 columns times 32 elements) in a tile,
// and their conversion to bytes. A row of a tile holds one quad of each column (layout.h).
//
// B is a vector of bytes of some instruction set. It offers load(p), &, |, low_bits<n>() (bytes
// with the n lowest bits set), and lookup(table, b), table[b] for b below 16. It also offers
// shift_right(b, n) and shift_left(b, n), which may carry bits into a neighbouring byte and must be
// followed by &.
//
// Each of the codes offers:
//   kBytes       of a group, of all columns
//   quad<B>(p, quad)   the bytes of quad 0..7 of the columns whose bytes begin at p
//   quad_at<B, kAt>(p, quad)   for upper bits: the same, shifted up by kAt bits
//   kSigned      whether these bytes are signed; if not, they are at most kMax, and the weight is
//                the byte - kOffset
//   kMaxSize     of |weight|
//   put(p, quad, place, code)   sets a code in a cleared group; place: column * 4 + element of the
//                quad
//   code(weight) for tests and for values that are no stored code
// Internal linkage, as everything compiled with instruction-set flags.
#ifndef OUTRIDER_KERNELS_FORMATS_CODES_H_
#define OUTRIDER_KERNELS_FORMATS_CODES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/layout.h"

namespace outrider::kernels {
namespace {

inline void put_bits(std::byte* p, int row, int place, int bits) {
  p[row * kRowBytes + place] |= static_cast<std::byte>(bits);
}

// Moves bits from position `from` of their bytes to position `to`; other bits are undefined.
template <class B>
[[gnu::always_inline]] inline B moved(const B& bits, int from, int to) {
  if (from == to) return bits;
  return from > to ? B::shift_right(bits, from - to) : B::shift_left(bits, to - from);
}

// Signed bytes.
struct WholeBytes {
  static constexpr std::size_t kBytes = std::size_t{kQuads} * kRowBytes;
  static constexpr bool kSigned = true;
  static constexpr int kMax = 255;
  static constexpr int kOffset = 0;
  static constexpr int kMaxSize = 128;

  template <class B>
  [[gnu::always_inline]] static B quad(const std::byte* p, int quad) {
    return B::load(p + quad * kRowBytes);
  }
  static void put(std::byte* p, int quad, int place, int code) { put_bits(p, quad, place, code); }
};

// Bytes with quad r in the low and quad r + 4 in the high half, r < 4.
template <int kTheOffset>
struct FourBits {
  static constexpr std::size_t kBytes = std::size_t{kQuads} / 2 * kRowBytes;
  static constexpr bool kSigned = false;
  static constexpr int kMax = 15;
  static constexpr int kOffset = kTheOffset;
  static constexpr int kMaxSize = kMax - kOffset > kOffset ? kMax - kOffset : kOffset;

  template <class B>
  [[gnu::always_inline]] static B quad(const std::byte* p, int quad) {
    const int row = quad % (kQuads / 2);
    const B both = B::load(p + row * kRowBytes);
    return (quad == row ? both : B::shift_right(both, 4)) & B::template low_bits<4>();
  }
  static void put(std::byte* p, int quad, int place, int code) {
    put_bits(p, quad % (kQuads / 2), place, code << (quad < kQuads / 2 ? 0 : 4));
  }
};

// Bytes with quads r, r + 2, r + 4 and r + 6 in two bits each, r < 2.
template <int kTheOffset>
struct TwoBits {
  static constexpr std::size_t kBytes = std::size_t{kQuads} / 4 * kRowBytes;
  static constexpr bool kSigned = false;
  static constexpr int kMax = 3;
  static constexpr int kOffset = kTheOffset;
  static constexpr int kMaxSize = kMax - kOffset > kOffset ? kMax - kOffset : kOffset;

  template <class B>
  [[gnu::always_inline]] static B quad(const std::byte* p, int quad) {
    return quad_at<B, 0>(p, quad);
  }
  template <class B, int kAt>
  [[gnu::always_inline]] static B quad_at(const std::byte* p, int quad) {
    return moved<B>(B::load(p + quad % 2 * kRowBytes), quad / 2 * 2, kAt) &
           B::shift_left(B::template low_bits<2>(), kAt);
  }
  static void put(std::byte* p, int quad, int place, int code) {
    put_bits(p, quad % 2, place, code << (quad / 2 * 2));
  }
};

// One row of bytes, with one bit for each quad.
struct OneBit {
  static constexpr std::size_t kBytes = kRowBytes;

  template <class B, int kAt>
  [[gnu::always_inline]] static B quad_at(const std::byte* p, int quad) {
    return moved<B>(B::load(p), quad, kAt) & B::shift_left(B::template low_bits<1>(), kAt);
  }
  static void put(std::byte* p, int quad, int place, int code) {
    put_bits(p, 0, place, code << quad);
  }
};

// The kLowBits lower bits in Low's layout, then the upper ones in High's.
template <class Low, class High, int kLowBits, int kBits, int kTheOffset>
struct TwoPlanes {
  static constexpr std::size_t kBytes = Low::kBytes + High::kBytes;
  static constexpr bool kSigned = false;
  static constexpr int kMax = (1 << kBits) - 1;
  static constexpr int kOffset = kTheOffset;
  static constexpr int kMaxSize = kMax - kOffset > kOffset ? kMax - kOffset : kOffset;

  template <class B>
  [[gnu::always_inline]] static B quad(const std::byte* p, int quad) {
    return Low::template quad<B>(p, quad) |
           High::template quad_at<B, kLowBits>(p + Low::kBytes, quad);
  }
  static void put(std::byte* p, int quad, int place, int code) {
    Low::put(p, quad, place, code & ((1 << kLowBits) - 1));
    High::put(p + Low::kBytes, quad, place, code >> kLowBits);
  }
};

template <int kTheOffset>
using ThreeBits = TwoPlanes<TwoBits<0>, OneBit, 2, 3, kTheOffset>;
template <int kTheOffset>
using FiveBits = TwoPlanes<FourBits<0>, OneBit, 4, 5, kTheOffset>;
template <int kTheOffset>
using SixBits = TwoPlanes<FourBits<0>, TwoBits<0>, 4, 6, kTheOffset>;

// Four bits that select one of sixteen signed bytes, Table::kValues.
template <class Table>
struct TableOfSixteen {
  static constexpr std::size_t kBytes = FourBits<0>::kBytes;
  static constexpr bool kSigned = true;
  static constexpr int kMax = 255;
  static constexpr int kOffset = 0;
  static constexpr int kMaxSize = 128;

  template <class B>
  [[gnu::always_inline]] static B quad(const std::byte* p, int quad) {
    return B::lookup(Table::kValues, FourBits<0>::quad<B>(p, quad));
  }
  static void put(std::byte* p, int quad, int place, int code) {
    FourBits<0>::put(p, quad, place, code);
  }
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_FORMATS_CODES_H_
