// The vector of the files compiled for AVX-512 (see algorithms.h): sixteen lanes are one register.
// Internal linkage, as everything compiled with instruction-set flags.
#ifndef OUTRIDER_KERNELS_VECTOR512_H_
#define OUTRIDER_KERNELS_VECTOR512_H_

// GCC 12 takes its own header's "undefined" registers for a mistake of ours (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <cstdint>

namespace outrider::kernels {
namespace {

// Sixteen rows of sixteen dwords -> their columns.
[[maybe_unused, gnu::always_inline]] inline void transpose(__m512i (&v)[16]) {
  __m512i w[16];
  for (int i = 0; i < 16; i += 2) {  // of two rows
    w[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    w[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {  // of four: v[i + j] has columns j, j + 4, j + 8, j + 12
    v[i] = _mm512_unpacklo_epi64(w[i], w[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(w[i], w[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(w[i + 1], w[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(w[i + 1], w[i + 3]);
  }
  for (int j = 0; j < 4; ++j) {
    w[j] = _mm512_shuffle_i32x4(v[j], v[j + 4], 0x88);      // j and j + 8 of eight
    w[j + 4] = _mm512_shuffle_i32x4(v[j], v[j + 4], 0xdd);  // j + 4 and j + 12
    w[j + 8] = _mm512_shuffle_i32x4(v[j + 8], v[j + 12], 0x88);
    w[j + 12] = _mm512_shuffle_i32x4(v[j + 8], v[j + 12], 0xdd);
  }
  for (int j = 0; j < 4; ++j) {
    v[j] = _mm512_shuffle_i32x4(w[j], w[j + 8], 0x88);
    v[j + 4] = _mm512_shuffle_i32x4(w[j + 4], w[j + 12], 0x88);
    v[j + 8] = _mm512_shuffle_i32x4(w[j], w[j + 8], 0xdd);
    v[j + 12] = _mm512_shuffle_i32x4(w[j + 4], w[j + 12], 0xdd);
  }
}

struct Vector {
  // 32 registers: 16 sums leave enough for two tiles' weights and the inputs.
  static constexpr int kAccumulators = 16;
  static constexpr int kSumsBesideInputs = 16;
  static constexpr int kMaxRows = 8;
  static constexpr int kOneRowTiles = 2;
  static constexpr int kDotSums = 16;
  static constexpr int kDotQueries = 4;
  static constexpr int kValueSums = 16;
  static constexpr int kValueQueries = 4;
  static constexpr bool kWidensInPlace = true;
  static constexpr int kColumnDims = 32;
  static constexpr int kWalksWeighed = 4;
  static constexpr int kDoubles = 8;
  template <class Bits>
  static Bits multiply_low_halves(Bits a, Bits b) {
    return __builtin_bit_cast(
        Bits, _mm512_mul_epu32(__builtin_bit_cast(__m512i, a), __builtin_bit_cast(__m512i, b)));
  }

  __m512 lanes;

  static Vector zero() { return {_mm512_setzero_ps()}; }
  static Vector broadcast(float value) { return {_mm512_set1_ps(value)}; }
  static Vector broadcast_anew(const float* p) { return broadcast(*p); }
  static Vector load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vector load(const std::uint16_t* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_half(p)), 16))};
  }
  static Vector load_first(const float* p, int n) { return {_mm512_maskz_loadu_ps(first(n), p)}; }
  static Vector load_first(const std::uint16_t* p, int n) {
    const __m256i half = _mm256_maskz_loadu_epi16(first(n), p);
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
  }
  template <class Element>
  static Vector load_mixed(const Element* p) {
    return load(p);
  }
  template <class Element>
  static Vector in_order(Vector value) {
    return value;
  }
  static void lay_columns(const std::uint16_t* const (&rows)[16], float* to, int stride) {
    __m512i pairs[16];
    for (int i = 0; i < 16; ++i) pairs[i] = _mm512_loadu_si512(rows[i]);
    transpose(pairs);
    const __m512i odd_bits = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
    for (int i = 0; i < 16; ++i) {
      _mm512_storeu_si512(to + 2 * i * stride, _mm512_slli_epi32(pairs[i], 16));
      _mm512_storeu_si512(to + (2 * i + 1) * stride, _mm512_and_si512(pairs[i], odd_bits));
    }
  }
  static Vector load_f16(const std::uint16_t* p) { return {_mm512_cvtph_ps(load_half(p))}; }
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
// The same additions as reduce_add's, two vectors' in one instruction: halves of two vectors side
// by side, then quarters of four, pairs of eight, singles of sixteen. What stays in its place is
// blended, which any unit does, and only the other half is shuffled, which one does. Each step
// leaves its vectors in an order of its own; they start so that they end in theirs.
[[maybe_unused, gnu::always_inline]] inline Vector reduce_add_each(const Vector (&sums)[16]) {
  constexpr int kStart[16] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
  const __m512i other_quarters =
      _mm512_setr_epi32(4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15, 24, 25, 26, 27);
  __m512 v[16];
  for (int i = 0; i < 16; ++i) v[i] = sums[kStart[i]].lanes;
  for (int i = 0; i < 8; ++i) {
    const __m512 a = v[2 * i];
    const __m512 b = v[2 * i + 1];
    v[i] = _mm512_add_ps(_mm512_mask_blend_ps(0xff00, a, b), _mm512_shuffle_f32x4(a, b, 0x4e));
  }
  for (int i = 0; i < 4; ++i) {
    const __m512 a = v[2 * i];
    const __m512 b = v[2 * i + 1];
    v[i] = _mm512_add_ps(_mm512_mask_blend_ps(0xf0f0, a, b),
                         _mm512_permutex2var_ps(a, other_quarters, b));
  }
  for (int i = 0; i < 2; ++i) {
    const __m512 a = v[2 * i];
    const __m512 b = v[2 * i + 1];
    v[i] = _mm512_add_ps(_mm512_mask_blend_ps(0xcccc, a, b), _mm512_shuffle_ps(a, b, 0x4e));
  }
  return {_mm512_add_ps(_mm512_mask_blend_ps(0xaaaa, v[0], v[1]),
                        _mm512_permute_ps(_mm512_mask_blend_ps(0x5555, v[0], v[1]), 0xb1))};
}
[[maybe_unused]] float reduce_max(Vector a) {
  const __m256 eight =
      _mm256_max_ps(_mm512_castps512_ps256(a.lanes), _mm512_extractf32x8_ps(a.lanes, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_VECTOR512_H_
