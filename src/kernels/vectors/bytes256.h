// SPDX-License-Identifier: Apache-2.0
// Thirty-two bytes of AVX2 for formats/codes.h: a quad of eight columns. Internal linkage, as
// everything compiled with instruction-set flags.
#ifndef OUTRIDER_KERNELS_VECTORS_BYTES256_H_
#define OUTRIDER_KERNELS_VECTORS_BYTES256_H_

// GCC 12 warns about its own header's "undefined" registers (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <cstddef>
#include <cstdint>

namespace outrider::kernels {
namespace {

struct Bytes256 {
  __m256i bytes;

  static Bytes256 load(const std::byte* p) {
    return {_mm256_load_si256(reinterpret_cast<const __m256i*>(p))};
  }
  template <int kBits>
  static Bytes256 low_bits() {
    return {_mm256_set1_epi8((1 << kBits) - 1)};
  }
  static Bytes256 shift_right(Bytes256 b, int n) { return {_mm256_srli_epi16(b.bytes, n)}; }
  static Bytes256 shift_left(Bytes256 b, int n) { return {_mm256_slli_epi16(b.bytes, n)}; }
  static Bytes256 lookup(const std::int8_t (&table)[16], Bytes256 b) {
    const __m128i row = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return {_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(row), b.bytes)};
  }
};

[[maybe_unused]] Bytes256 operator&(Bytes256 a, Bytes256 b) {
  return {_mm256_and_si256(a.bytes, b.bytes)};
}
[[maybe_unused]] Bytes256 operator|(Bytes256 a, Bytes256 b) {
  return {_mm256_or_si256(a.bytes, b.bytes)};
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_VECTORS_BYTES256_H_
