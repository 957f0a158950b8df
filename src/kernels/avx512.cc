// SPDX-License-Identifier: Apache-2.0
// The kernel table "avx512": AVX-512 F, BW, VL and DQ. If the machine also has VNNI or BF16,
// dispatch.cc replaces the products by those of avx512_vnni.cc and avx512_bf16.cc. algorithms.h
// says what each type here must offer.
#if defined(__x86_64__)
#include "kernels/algorithms.h"
#include "kernels/vectors/bytes256.h"
#include "kernels/vectors/vector512.h"
#include "kernels/vectors/words512.h"

namespace outrider::kernels {
namespace {

// Dots of one tile. Bytes are widened to 16 bits and multiplied in pairs; nothing saturates.
struct Avx512Dots {
  static constexpr int kMaxRows = 4;
  static constexpr int kFixedWayRows = 2;
  static constexpr std::size_t kOneRowAhead = kPrefetchBytes / kMaxStreams;

  // weights: the codes of one group, 16 columns times 32 elements, in the layout of Codes
  // (formats/codes.h). dots[part][r]: of each column with row r of the inputs, or with half `part`
  // of it if kParts is 2.
  template <class Codes, int kParts, int R, class Inputs>
  static void dots(const std::byte* weights, const Inputs& inputs, Vector (&dots)[kParts][R]) {
    for (int part = 0; part < kParts; ++part) {
      dots_of_part<Codes, kParts>(weights, inputs, part, dots[part]);
    }
  }

  template <class Codes, int kParts, int R, class Inputs>
  [[gnu::always_inline]] static void dots_of_part(const std::byte* weights, const Inputs& inputs,
                                                  int part, Vector (&dots)[R]) {
    // Codes are widened as signed bytes.
    static_assert(Codes::kSigned || Codes::kMax < 128);
    // [r][0]: of columns 0 to 7, [r][1]: of columns 8 to 15. Each column has two adjacent sums: of
    // the first and of the last two elements of its quads.
    __m512i sums[R][2];
    for (int r = 0; r < R; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_si512();
    constexpr int kOfPart = kQuads / kParts;
    for (int quad = part * kOfPart; quad < (part + 1) * kOfPart; ++quad) {
      const __m512i columns[2] = {
          _mm512_cvtepi8_epi16(Codes::template quad<Bytes256>(weights, quad).bytes),
          _mm512_cvtepi8_epi16(Codes::template quad<Bytes256>(weights + 32, quad).bytes)};
      for (int r = 0; r < R; ++r) {
        int four;
        __builtin_memcpy(&four, inputs.row(r) + quad * kQuad, 4);
        const __m512i input = _mm512_cvtepi8_epi16(_mm256_set1_epi32(four));
        for (int half = 0; half < 2; ++half) {
          sums[r][half] = _mm512_add_epi32(sums[r][half], _mm512_madd_epi16(columns[half], input));
        }
      }
    }
    // The two sums of a column are added; the columns come out in order.
    const __m512i evens =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
    for (int r = 0; r < R; ++r) {
      const __m512i first = _mm512_permutex2var_epi32(sums[r][0], evens, sums[r][1]);
      const __m512i second = _mm512_permutex2var_epi32(sums[r][0], odds, sums[r][1]);
      __m512i sum = _mm512_add_epi32(first, second);
      if constexpr (Codes::kOffset != 0) {
        const int off = Codes::kOffset * inputs.template sum<kParts>(r, part);
        sum = _mm512_sub_epi32(sum, _mm512_set1_epi32(off));
      }
      dots[r] = {_mm512_cvtepi32_ps(sum)};
    }
  }
};
static_assert(OneTileDots<Avx512Dots, Vector>);

// For Words512 (vectors/words512.h): adds two products of 16-bit words to each sum.
struct MultiplyThenAdd {
  static __m512i of(__m512i sum, __m512i a, __m512i b) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
  }
};
static_assert(WordDots<Words512<MultiplyThenAdd>, Vector>);

}  // namespace

constinit const KernelTable kAvx512Table =
    make_table<Vector, TileByTile<Vector, Avx512Dots>, Words512<MultiplyThenAdd>>("avx512");

}  // namespace outrider::kernels
#endif  // __x86_64__
