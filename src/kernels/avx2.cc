// SPDX-License-Identifier: Apache-2.0
// AVX2 with FMA and F16C: sixteen lanes are two registers.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/algorithms.h"
#include "kernels/vectors/bytes256.h"
#include "kernels/vectors/float_vector.h"

namespace outrider::kernels {
namespace {

struct Vector {
  // 16 registers, two per vector. Beside six sums there is space for one tile's weights and an
  // input; beside four, for two tiles' weights.
  static constexpr int kAccumulators = 6;
  static constexpr int kSumsBesideInputs = 4;
  static constexpr int kMaxRows = 6;
  // One row: two chains of additions per tile, since an addition takes four cycles and two start
  // per cycle.
  static constexpr int kOneRowTiles = 4;
  static constexpr int kAttentionSums = 4;
  static constexpr int kStatesWeighed = 1;
  static constexpr int kDoubles = 4;
  template <class Bits>
  static Bits multiply_low_halves(Bits a, Bits b) {
    return __builtin_bit_cast(
        Bits, _mm256_mul_epu32(__builtin_bit_cast(__m256i, a), __builtin_bit_cast(__m256i, b)));
  }

  __m256 low, high;  // lanes 0..7 and 8..15

  // Sums of integers below 2^31, each exact as a float.
  struct Integers {
    __m256i low, high;

    static Integers zero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
    void add_exact(const Vector& numbers) {
      low = _mm256_add_epi32(low, _mm256_cvtps_epi32(numbers.low));
      high = _mm256_add_epi32(high, _mm256_cvtps_epi32(numbers.high));
    }
    Vector rounded() const { return {_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)}; }
  };

  static Vector zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Vector broadcast(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
  // Loads where the value is needed: the pointer is opaque to the compiler, so it does not merge
  // loads and keep the result in a register.
  static Vector broadcast_anew(const float* p) {
    __asm__ volatile("" : "+r"(p));
    return broadcast(*p);
  }
  static Vector load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  // Even elements in the low register, odd ones in the high one: half the work of widening in
  // order.
  static Vector load_mixed(const std::uint16_t* p) {
    const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i odd_bits = _mm256_set1_epi32(static_cast<int>(0xffff0000U));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)),
            _mm256_castsi256_ps(_mm256_and_si256(pairs, odd_bits))};
  }
  static Vector load_mixed(const float* p) { return load(p); }
  template <class Element>
  static Vector in_order(Vector mixed) {
    if constexpr (sizeof(Element) == 4) {
      return mixed;
    } else {
      const __m256 first = _mm256_unpacklo_ps(mixed.low, mixed.high);   // 0..3, 8..11
      const __m256 second = _mm256_unpackhi_ps(mixed.low, mixed.high);  // 4..7, 12..15
      return {_mm256_permute2f128_ps(first, second, 0x20),
              _mm256_permute2f128_ps(first, second, 0x31)};
    }
  }
  static Vector load_even(const std::uint16_t* p) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(load_pairs(p), 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(load_pairs(p + 16), 16))};
  }
  static Vector load_odd(const std::uint16_t* p) {
    const __m256i odd_bits = _mm256_set1_epi32(static_cast<int>(0xffff0000U));
    return {_mm256_castsi256_ps(_mm256_and_si256(load_pairs(p), odd_bits)),
            _mm256_castsi256_ps(_mm256_and_si256(load_pairs(p + 16), odd_bits))};
  }
  static Vector load_first(const float* p, int n) {
    return {_mm256_maskload_ps(p, first(n)), _mm256_maskload_ps(p + 8, first(n - 8))};
  }
  static Vector load_f16(const std::uint16_t* p) {
    return {_mm256_cvtph_ps(load_half(p)), _mm256_cvtph_ps(load_half(p + 8))};
  }
  static Vector load_bytes(const std::byte* p) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_eight(p))),
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_eight(p + 8)))};
  }
  static Vector load_signed_bytes(const std::byte* p) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_eight(p))),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_eight(p + 8)))};
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
    // The pack works within 128-bit halves: (0-3, 8-11, 4-7, 12-15), reordered by the permute.
    const __m256i words = _mm256_permute4x64_epi64(
        _mm256_packs_epi32(_mm256_cvtps_epi32(low), _mm256_cvtps_epi32(high)), 0xd8);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }
  void store_int16(std::int16_t* p) const {
    const __m256i words = _mm256_permute4x64_epi64(
        _mm256_packs_epi32(_mm256_cvtps_epi32(low), _mm256_cvtps_epi32(high)), 0xd8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), words);
  }

 private:
  // All bits of the first n of eight lanes; n may be outside 0..8.
  static __m256i first(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static __m256i load_pairs(const std::uint16_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static __m128i load_eight(const std::byte* p) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
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
float reduce_max(Vector a) {
  const __m256 eight = _mm256_max_ps(a.low, a.high);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

static_assert(FloatVector<Vector>);

// Bytes are multiplied by an instruction that takes one side as unsigned and adds pairs of products
// in 16 bits, saturating. Eight columns (half a tile) at a time, so that the sums of eight rows
// stay in registers, as long as the loops over quads are not unrolled.
struct Avx2Dots {
  static constexpr int kMaxRows = 8;
  static constexpr int kFixedWayRows = kAnyRows;
  // (With a quarter, as for vectors of 512 bits: one row of int8 takes 1.1 to 1.3 times as long, of
  // int4 1.05 to 1.2 times. With all of it: the same or 1.2 times.)
  static constexpr std::size_t kOneRowAhead = kPrefetchBytes / 2;

  static __m256i broadcast_quad(const std::int8_t* p) {
    int four;
    __builtin_memcpy(&four, p, 4);
    return _mm256_set1_epi32(four);
  }

  // Signed bytes: the weights' signs are moved to the inputs, which are never -128. A pair is at
  // most 2 * 128 * 127, below 2^15, but two pairs are not: 32 bits from there on.
  template <class Codes, int R, class Inputs>
  static void eight_signed(const std::byte* weights, const Inputs& inputs, int first, int end,
                           __m256i (&sums)[R]) {
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 1
    for (int quad = first; quad < end; ++quad) {
      const __m256i weight = Codes::template quad<Bytes256>(weights, quad).bytes;
      const __m256i size = _mm256_abs_epi8(weight);
      for (int r = 0; r < R; ++r) {
        const __m256i input = broadcast_quad(inputs.row(r) + quad * kQuad);
        const __m256i pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(input, weight));
        sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(pairs, ones));
      }
    }
  }

  // Four-bit weights are unsigned and small: the eight pairs of a whole group fit into 16 bits, 8 *
  // 2 * 15 * 127 < 2^15.
  template <int R, class Inputs>
  static void eight_of_four_bits(const std::byte* weights, const Inputs& inputs,
                                 __m256i (&sums)[R]) {
    const __m256i low_bits = _mm256_set1_epi8(15);
#pragma GCC unroll 1
    for (int quad = 0; quad < kQuads / 2; ++quad) {
      const __m256i both = Bytes256::load(weights + quad * kRowBytes).bytes;
      const __m256i low = _mm256_and_si256(both, low_bits);
      const __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), low_bits);
      for (int r = 0; r < R; ++r) {
        const std::int8_t* input = inputs.row(r) + quad * kQuad;
        const __m256i first = _mm256_maddubs_epi16(low, broadcast_quad(input));
        const __m256i second = _mm256_maddubs_epi16(high, broadcast_quad(input + kGroup / 2));
        sums[r] = _mm256_add_epi16(sums[r], _mm256_add_epi16(first, second));
      }
    }
    for (int r = 0; r < R; ++r) sums[r] = _mm256_madd_epi16(sums[r], _mm256_set1_epi16(1));
  }

  // Other unsigned codes: as many pairs as fit into 16 bits, then 32 bits.
  template <class Codes, int R, class Inputs>
  static void eight_unsigned(const std::byte* weights, const Inputs& inputs, int first, int end,
                             __m256i (&sums)[R]) {
    constexpr int kTogether = 32767 / (2 * 127 * Codes::kMax) < 4 ? 2 : 4;
    static_assert(kTogether * 2 * 127 * Codes::kMax <= 32767);
    const __m256i ones = _mm256_set1_epi16(1);
    for (int begin = first; begin < end; begin += kTogether) {
      __m256i pairs[R] = {};
#pragma GCC unroll 4
      for (int quad = begin; quad < begin + kTogether; ++quad) {
        const __m256i weight = Codes::template quad<Bytes256>(weights, quad).bytes;
        for (int r = 0; r < R; ++r) {
          const __m256i input = broadcast_quad(inputs.row(r) + quad * kQuad);
          pairs[r] = _mm256_add_epi16(pairs[r], _mm256_maddubs_epi16(weight, input));
        }
      }
      for (int r = 0; r < R; ++r) {
        sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(pairs[r], ones));
      }
    }
  }

  // One part's sums of eight columns, as floats.
  template <class Codes, int kParts, int R, class Inputs>
  static void eight(const std::byte* weights, const Inputs& inputs, int part, __m256i (&sums)[R]) {
    constexpr int kOfPart = kQuads / kParts;
    const int first = part * kOfPart;
    if constexpr (Codes::kSigned) {
      eight_signed<Codes>(weights, inputs, first, first + kOfPart, sums);
    } else if constexpr (Codes::kBytes == FourBits<0>::kBytes && Codes::kMax == 15 && kParts == 1) {
      eight_of_four_bits(weights, inputs, sums);
    } else {
      eight_unsigned<Codes>(weights, inputs, first, first + kOfPart, sums);
    }
    if constexpr (Codes::kOffset != 0) {
      for (int r = 0; r < R; ++r) {
        const int off = Codes::kOffset * inputs.template sum<kParts>(r, part);
        sums[r] = _mm256_sub_epi32(sums[r], _mm256_set1_epi32(off));
      }
    }
  }

  template <class Codes, int kParts, int R, class Inputs>
  static void dots(const std::byte* weights, const Inputs& inputs, Vector (&dots)[kParts][R]) {
    for (int part = 0; part < kParts; ++part) {
      __m256i low[R] = {};
      eight<Codes, kParts>(weights, inputs, part, low);
      for (int r = 0; r < R; ++r) dots[part][r].low = _mm256_cvtepi32_ps(low[r]);
      __m256i high[R] = {};
      eight<Codes, kParts>(weights + kRowBytes / 2, inputs, part, high);
      for (int r = 0; r < R; ++r) dots[part][r].high = _mm256_cvtepi32_ps(high[r]);
    }
  }
};
static_assert(OneTileDots<Avx2Dots, Vector>);

// One instruction sums two products of words into 32 bits, without saturation. 16 registers hold
// eight sums, two vectors of columns and their factors.
struct Avx2Words : WordNumbers {
  static constexpr int kRows = 4;
  static constexpr int vectors(int) { return 1; }

  template <int R, int T, class Rows, class Ahead, class Use>
  static void dots(const std::byte* cells, std::size_t row_bytes, int n, const Rows& rows,
                   const Ahead& ahead, const Use& use) {
    static_assert(T == 1);
    __m256i low[R] = {};
    __m256i high[R] = {};
    std::size_t at = 0;
    for (int i = 0; i < n; i += 4, at += row_bytes) {
      ahead.template row<T>(at);
      const __m256i first = load(cells + at);
      const __m256i second = load(cells + at + kLineBytes / 2);
      add(even(first), even(second), rows, i, low, high);
      add(odd(first), odd(second), rows, i + 2, low, high);
    }
    for_sums<R, 1>([&](int r, int t) {
      use(r, t, Vector{_mm256_cvtepi32_ps(low[r]), _mm256_cvtepi32_ps(high[r])});
    });
  }

 private:
  static __m256i load(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static __m256i even(__m256i bytes) { return odd(_mm256_slli_epi16(bytes, 8)); }
  static __m256i odd(__m256i bytes) { return _mm256_srai_epi16(bytes, 8); }

  template <int R, class Rows>
  [[gnu::always_inline]] static void add(__m256i first, __m256i second, const Rows& rows, int i,
                                         __m256i (&low)[R], __m256i (&high)[R]) {
    for (int r = 0; r < R; ++r) {
      int two;
      __builtin_memcpy(&two, rows.at(r) + i, 4);
      const __m256i row = _mm256_set1_epi32(two);
      low[r] = _mm256_add_epi32(low[r], _mm256_madd_epi16(first, row));
      high[r] = _mm256_add_epi32(high[r], _mm256_madd_epi16(second, row));
    }
  }
};
static_assert(WordDots<Avx2Words, Vector>);

}  // namespace

constinit const KernelTable kAvx2Table =
    make_table<Vector, TileByTile<Vector, Avx2Dots>, Avx2Words>("avx2");

}  // namespace outrider::kernels
#endif  // __x86_64__
