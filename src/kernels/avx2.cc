// AVX2 with FMA and F16C: sixteen lanes are two registers.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/algorithms.h"

namespace outrider::kernels {
namespace {

struct Vector {
  // 16 registers, two to a vector: 4 vectors of sums leave 8 for weights, inputs and addresses'
  // temporaries.
  static constexpr int kAccumulators = 4;
  static constexpr int kMaxRows = 4;
  static constexpr int kDoubles = 4;

  __m256 low, high;  // lanes 0..7 and 8..15

  static Vector zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Vector broadcast(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
  static Vector load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static Vector load(const std::uint16_t* p) {
    const __m256i low = _mm256_cvtepu16_epi32(load_half(p));
    const __m256i high = _mm256_cvtepu16_epi32(load_half(p + 8));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(low, 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(high, 16))};
  }
  static Vector load(const std::int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
  }
  static Vector load_first(const std::int8_t* p, int n) {
    std::int8_t all[16] = {};
    for (int i = 0; i < n; ++i) all[i] = p[i];
    return load(all);
  }
  static Vector load_first(const float* p, int n) {
    return {_mm256_maskload_ps(p, first(n)), _mm256_maskload_ps(p + 8, first(n - 8))};
  }
  // The set has no masked load of 16-bit elements.
  static Vector load_first(const std::uint16_t* p, int n) {
    if (n == 8) {
      const __m256i low = _mm256_cvtepu16_epi32(load_half(p));
      return {_mm256_castsi256_ps(_mm256_slli_epi32(low, 16)), _mm256_setzero_ps()};
    }
    std::uint16_t all[16] = {};
    for (int i = 0; i < n; ++i) all[i] = p[i];
    return load(all);
  }
  static Vector load_f16(const std::uint16_t* p) {
    return {_mm256_cvtph_ps(load_half(p)), _mm256_cvtph_ps(load_half(p + 8))};
  }
  void store(float* p) const {
    _mm256_storeu_ps(p, low);
    _mm256_storeu_ps(p + 8, high);
  }
  void store_first(float* p, int n) const {
    _mm256_maskstore_ps(p, first(n), low);
    _mm256_maskstore_ps(p + 8, first(n - 8), high);
  }
  void store_int8(std::int8_t* p) const {
    // The pack works within 128-bit halves: (0-3, 8-11, 4-7, 12-15), put in order by the permute.
    const __m256i words = _mm256_permute4x64_epi64(
        _mm256_packs_epi32(_mm256_cvtps_epi32(low), _mm256_cvtps_epi32(high)), 0xd8);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }

 private:
  // All bits of the first n of eight lanes; n may lie outside 0..8.
  static __m256i first(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static __m128i load_half(const std::uint16_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
};

Vector operator+(Vector a, Vector b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
Vector operator-(Vector a, Vector b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
Vector operator*(Vector a, Vector b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
Vector operator/(Vector a, Vector b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
Vector fma(Vector a, Vector b, Vector c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
Vector max(Vector a, Vector b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
Vector min(Vector a, Vector b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
Vector absolute(Vector a) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
}
__m256 shift_left_23(__m256 a) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(a), 23));
}
Vector shift_left_23(Vector a) { return {shift_left_23(a.low), shift_left_23(a.high)}; }

float reduce_add(Vector a) {
  const __m256 eight = _mm256_add_ps(a.low, a.high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
Vector reduce_add_each(const Vector (&sums)[kLanes]) {
  float each[kLanes];
  for (int i = 0; i < kLanes; ++i) each[i] = reduce_add(sums[i]);
  return Vector::load(each);
}
float reduce_max(Vector a) {
  const __m256 eight = _mm256_max_ps(a.low, a.high);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// Bytes widened to 16 bits and multiplied in pairs: (-128) * (-127) * 2 fits 32 bits with ease, and
// nothing saturates on the way, as it could with the instruction that multiplies bytes.
struct Avx2Dots {
  static constexpr int kMaxRows = 2;

  // 16 bytes: one quad of four columns.
  static __m128i load_bytes(const std::byte* p) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(p));
  }

  // quads(quad, part): the quad of columns 4 * part .. 4 * part + 3 as bytes.
  template <int R, class Quads>
  static void multiply(Quads quads, const GroupInputs& inputs, Vector (&dots)[R]) {
    __m256i sums[R][4];  // per column two sums, of its quads' first and second halves
    for (int r = 0; r < R; ++r) {
      for (int part = 0; part < 4; ++part) sums[r][part] = _mm256_setzero_si256();
    }
    for (int quad = 0; quad < kQuads; ++quad) {
      __m256i input[R];
      for (int r = 0; r < R; ++r) {
        int four;
        __builtin_memcpy(&four, inputs.row(r) + quad * kQuad, 4);
        input[r] = _mm256_cvtepi8_epi16(_mm_set1_epi32(four));
      }
      for (int part = 0; part < 4; ++part) {
        const __m256i weights = _mm256_cvtepi8_epi16(quads(quad, part));
        for (int r = 0; r < R; ++r) {
          sums[r][part] = _mm256_add_epi32(sums[r][part], _mm256_madd_epi16(weights, input[r]));
        }
      }
    }
    for (int r = 0; r < R; ++r) {
      dots[r] = {columns(sums[r][0], sums[r][1]), columns(sums[r][2], sums[r][3])};
    }
  }

  // The two sums of each of eight columns, added. The horizontal add works within 128-bit halves:
  // columns (0, 1, 4, 5, 2, 3, 6, 7), put in order by the permute.
  static __m256 columns(__m256i first, __m256i second) {
    return _mm256_cvtepi32_ps(_mm256_permute4x64_epi64(_mm256_hadd_epi32(first, second), 0xd8));
  }

  template <int R>
  static void int8(const std::byte* weights, const GroupInputs& inputs, Vector (&dots)[R]) {
    const auto quads = [=](int quad, int part) {
      return load_bytes(weights + quad * kRowBytes + part * 16);
    };
    multiply(quads, inputs, dots);
  }

  template <int R>
  static void int4(const std::byte* weights, const GroupInputs& inputs, Vector (&dots)[R]) {
    const auto quads = [=](int quad, int part) {
      const int half = quad % (kQuads / 2);
      const __m128i both = load_bytes(weights + half * kRowBytes + part * 16);
      const __m128i low_bits = _mm_set1_epi8(15);
      return _mm_and_si128(quad == half ? both : _mm_srli_epi16(both, 4), low_bits);
    };
    multiply(quads, inputs, dots);
  }
};

}  // namespace

constinit const KernelTable kAvx2Table = make_table<Vector, Avx2Dots>("avx2");

}  // namespace outrider::kernels
#endif  // __x86_64__
