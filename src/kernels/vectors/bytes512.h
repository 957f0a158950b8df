// SPDX-License-Identifier: Apache-2.0
// The bytes of the files compiled for AVX-512 (formats/codes.h). Internal linkage, as everything
// compiled with instruction-set flags.
#ifndef OUTRIDER_KERNELS_VECTORS_BYTES512_H_
#define OUTRIDER_KERNELS_VECTORS_BYTES512_H_

#include <cstddef>
#include <cstdint>

#include "kernels/vectors/vector512.h"

namespace outrider::kernels {
namespace {

// Sixteen quads, for formats/codes.h.
struct Bytes512 {
  __m512i bytes;

  static Bytes512 load(const std::byte* p) {
    return {_mm512_load_si512(reinterpret_cast<const void*>(p))};
  }
  template <int kBits>
  static Bytes512 low_bits() {
    return {_mm512_set1_epi8((1 << kBits) - 1)};
  }
  static Bytes512 shift_right(Bytes512 b, int n) {
    return {_mm512_srli_epi16(b.bytes, static_cast<unsigned>(n))};
  }
  static Bytes512 shift_left(Bytes512 b, int n) {
    return {_mm512_slli_epi16(b.bytes, static_cast<unsigned>(n))};
  }
  static Bytes512 lookup(const std::int8_t (&table)[16], Bytes512 b) {
    const __m128i row = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(row), b.bytes)};
  }
};
[[maybe_unused]] Bytes512 operator&(Bytes512 a, Bytes512 b) {
  return {_mm512_and_si512(a.bytes, b.bytes)};
}
[[maybe_unused]] Bytes512 operator|(Bytes512 a, Bytes512 b) {
  return {_mm512_or_si512(a.bytes, b.bytes)};
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_VECTORS_BYTES512_H_
