// SPDX-License-Identifier: Apache-2.0
// The vector of the files compiled for AVX-512 (float_vector.h): sixteen lanes are one register.
// Internal linkage, as everything compiled with instruction-set flags.
#ifndef OUTRIDER_KERNELS_VECTORS_VECTOR512_H_
#define OUTRIDER_KERNELS_VECTORS_VECTOR512_H_

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

#include "kernels/vectors/float_vector.h"

namespace outrider::kernels {
namespace {

struct Vector {
  // 32 registers: 16 sums leave enough for two tiles' weights and the inputs.
  static constexpr int kAccumulators = 16;
  static constexpr int kSumsBesideInputs = 16;
  static constexpr int kMaxRows = 8;
  static constexpr int kOneRowTiles = 2;
  static constexpr int kAttentionSums = 16;
  static constexpr int kStatesWeighed = 4;
  static constexpr int kDoubles = 8;
  template <class Bits>
  static Bits multiply_low_halves(Bits a, Bits b) {
    return __builtin_bit_cast(
        Bits, _mm512_mul_epu32(__builtin_bit_cast(__m512i, a), __builtin_bit_cast(__m512i, b)));
  }

  __m512 lanes;

  // Sums of integers below 2^31, each term exact as a float.
  struct Integers {
    __m512i lanes;

    static Integers zero() { return {_mm512_setzero_si512()}; }
    void add_exact(const Vector& numbers) {
      lanes = _mm512_add_epi32(lanes, _mm512_cvtps_epi32(numbers.lanes));
    }
    Vector rounded() const { return {_mm512_cvtepi32_ps(lanes)}; }
  };

  static Vector zero() { return {_mm512_setzero_ps()}; }
  static Vector broadcast(float value) { return {_mm512_set1_ps(value)}; }
  static Vector broadcast_anew(const float* p) { return broadcast(*p); }
  static Vector load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vector load_first(const float* p, int n) { return {_mm512_maskz_loadu_ps(first(n), p)}; }
  static Vector load_mixed(const float* p) { return load(p); }
  static Vector load_mixed(const std::uint16_t* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_half(p)), 16))};
  }
  template <class Element>
  static Vector in_order(Vector value) {
    return value;
  }
  static Vector load_even(const std::uint16_t* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16))};
  }
  static Vector load_odd(const std::uint16_t* p) {
    const __m512i odd_bits = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
    return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), odd_bits))};
  }
  static Vector load_f16(const std::uint16_t* p) { return {_mm512_cvtph_ps(load_half(p))}; }
  static Vector load_bytes(const std::byte* p) {
    return {_mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
  }
  static Vector load_signed_bytes(const std::byte* p) {
    return {_mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
  }
  void store(float* p) const { _mm512_storeu_ps(p, lanes); }
  void store_first(float* p, int n) const { _mm512_mask_storeu_ps(p, first(n), lanes); }
  void store_int8(std::int8_t* p) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(lanes)));
  }
  void store_int16(std::int16_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(lanes)));
  }
  void store_bf16(std::uint16_t* p) const {
    const __m512i bits = _mm512_srli_epi32(_mm512_castps_si512(lanes), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(bits));
  }

 private:
  static __mmask16 first(int n) { return static_cast<__mmask16>((1U << n) - 1U); }
  static __m256i load_half(const std::uint16_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
};

[[maybe_unused]] Vector operator+(Vector a, Vector b) { return {_mm512_add_ps(a.lanes, b.lanes)}; }
[[maybe_unused]] Vector operator-(Vector a, Vector b) { return {_mm512_sub_ps(a.lanes, b.lanes)}; }
[[maybe_unused]] Vector operator*(Vector a, Vector b) { return {_mm512_mul_ps(a.lanes, b.lanes)}; }
[[maybe_unused]] Vector operator/(Vector a, Vector b) { return {_mm512_div_ps(a.lanes, b.lanes)}; }
[[maybe_unused]] Vector fma(Vector a, Vector b, Vector c) {
  return {_mm512_fmadd_ps(a.lanes, b.lanes, c.lanes)};
}
[[maybe_unused]] Vector max(Vector a, Vector b) { return {_mm512_max_ps(a.lanes, b.lanes)}; }
[[maybe_unused]] Vector min(Vector a, Vector b) { return {_mm512_min_ps(a.lanes, b.lanes)}; }
[[maybe_unused]] Vector absolute(Vector a) { return {_mm512_abs_ps(a.lanes)}; }
[[maybe_unused]] Vector shift_left_23(Vector a) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(a.lanes), 23))};
}

[[maybe_unused]] float reduce_add(Vector a) {
  const __m256 eight =
      _mm256_add_ps(_mm512_castps512_ps256(a.lanes), _mm512_extractf32x8_ps(a.lanes, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
[[maybe_unused]] float reduce_max(Vector a) {
  const __m256 eight =
      _mm256_max_ps(_mm512_castps512_ps256(a.lanes), _mm512_extractf32x8_ps(a.lanes, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

static_assert(Bf16Vector<Vector>);

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_VECTORS_VECTOR512_H_
