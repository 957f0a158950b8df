// SPDX-License-Identifier: Apache-2.0
// Shared by the kernels' algorithms, over a vector type V of 16 floats: ragged ends, rounding, e^x,
// the normal distribution's tail, tanh.
#ifndef OUTRIDER_KERNELS_VECTORS_VECTOR_MATH_H_
#define OUTRIDER_KERNELS_VECTORS_VECTOR_MATH_H_

#include "kernels/table.h"
#include "kernels/vectors/float_vector.h"

namespace outrider::kernels {
namespace {

// Elements [at, at + 16), up to n.
template <FloatVector V>
V load_at(const float* from, int at, int n) {
  return at + kLanes <= n ? V::load(from + at) : V::load_first(from + at, n - at);
}

template <FloatVector V>
void store_at(V value, float* to, int at, int n) {
  if (at + kLanes <= n) {
    value.store(to + at);
  } else {
    value.store_first(to + at, n - at);
  }
}

// 1.5 * 2^23: added to |x| < 2^22 it leaves no bit for a fraction. So the sum is rounded to the
// nearest integer, ties to even, which is then in the low mantissa bits.
constexpr float kRoundingShift = 0x1.8p23F;

template <FloatVector V>
V round_even(V x) {
  const V shift = V::broadcast(kRoundingShift);
  return (x + shift) - shift;
}

// 2^n for integral n in -126..127: n plus the exponent's bias, shifted to the exponent.
template <FloatVector V>
V power_of_two(V n) {
  return shift_left_23(n + V::broadcast(kRoundingShift + 127.0F));
}

// r, with x = n ln 2 + r. ln 2 is in two parts; the first has 16 bits, so that its product with n
// is exact.
template <FloatVector V>
[[gnu::always_inline]] inline V rest_of(V x, V n) {
  const V r = fma(n, V::broadcast(-0x1.62e4p-1F), x);
  return fma(n, V::broadcast(-0x1.7f7d1cp-20F), r);
}

// (e^r - 1) / r for |r| <= ln(2) / 2, by e^r's Taylor polynomial of degree 7: its remainder r^8 /
// 8! is below 6e-9, a tenth of the float rounding at 1.
template <FloatVector V>
[[gnu::always_inline]] inline V growth_of_rest(V r) {
  V e = V::broadcast(1.0F / 5040);
  e = fma(e, r, V::broadcast(1.0F / 720));
  e = fma(e, r, V::broadcast(1.0F / 120));
  e = fma(e, r, V::broadcast(1.0F / 24));
  e = fma(e, r, V::broadcast(1.0F / 6));
  e = fma(e, r, V::broadcast(0.5F));
  return fma(e, r, V::broadcast(1.0F));
}

// e^r, with x = n ln 2 + r.
template <FloatVector V>
[[gnu::always_inline]] inline V exponential_of_rest(V x, V n) {
  const V r = rest_of(x, n);
  return fma(growth_of_rest(r), r, V::broadcast(1.0F));
}

constexpr float kInverseOfLn2 = 0x1.715476p+0F;

// e^x = 2^n * e^r with n = round(x / ln 2). Correct for all x: subnormal results are rounded once,
// -inf gives 0, large x infinity, NaN stays NaN.
template <FloatVector V>  // a call would pass a V of two registers through memory
[[gnu::always_inline]] inline V exponential(V x) {
  x = max(V::broadcast(-104.0F), x);  // e^-104 < 2^-150, which rounds to 0
  x = min(V::broadcast(89.0F), x);    // e^89 > 2^128, which is infinity
  const V n = round_even(x * V::broadcast(kInverseOfLn2));
  const V e = exponential_of_rest(x, n);
  // n is from -150 to 128, beyond what one exponent holds: two exact powers, of which only the
  // second multiplication can round.
  const V half = round_even(n * V::broadcast(0.5F));
  return e * power_of_two(half) * power_of_two(n - half);
}

// e^x for x <= 0 (or NaN, which stays NaN), where results below 2^-126 may be 0: one power is
// enough, n = -127 making it 0.
template <FloatVector V>
[[gnu::always_inline]] inline V exponential_of_negative(V x) {
  x = max(V::broadcast(-88.0F), x);  // -126.96 ln 2
  const V n = round_even(x * V::broadcast(kInverseOfLn2));
  return exponential_of_rest(x, n) * power_of_two(n);
}

// erfc(x / sqrt(2)) / 2 for 0 <= x <= 15 (or NaN, which stays NaN): the normal distribution's mass
// above x, 0 from 14.4 on.
//
// It is e^(-x^2 / 2) t P(t) with t = 1 / (1 + 0.268 x). Over that range the quotient of the two
// sides without P is between 0.1 and 0.5, and nearly linear in t. P interpolates it at the nine
// Chebyshev points, which leaves a relative error of 2.3e-8, less than half of a float's last
// place; other scales of x than 0.268 leave more.
template <FloatVector V>
[[gnu::always_inline]] inline V normal_tail(V x) {
  const V one = V::broadcast(1.0F);
  const V minus_half = V::broadcast(-0.5F);
  // e^-y multiplies an error of y by y's size, so the rounding error of the square is added back.
  const V square = x * x;
  const V lost = fma(x, x, V::zero() - square);
  const V e = exponential(square * minus_half);
  const V bell = fma(e, lost * minus_half, e);
  const V t = one / fma(x, V::broadcast(0.268F), one);
  V p = V::broadcast(0.0302124098F);
  p = fma(p, t, V::broadcast(-0.135887772F));
  p = fma(p, t, V::broadcast(0.193257436F));
  p = fma(p, t, V::broadcast(-0.0925299749F));
  p = fma(p, t, V::broadcast(0.122791201F));
  p = fma(p, t, V::broadcast(0.0661829412F));
  p = fma(p, t, V::broadcast(0.102456734F));
  p = fma(p, t, V::broadcast(0.10658586F));
  p = fma(p, t, V::broadcast(0.106931165F));
  return bell * (p * t);
}

// tanh u for all u: -e / (2 + e) with e = e^(-2 |u|) - 1, with the sign of u. The difference is
// formed before e^r is rounded, so small u lose no precision. NaN stays NaN.
template <FloatVector V>
[[gnu::always_inline]] inline V hyperbolic_tangent(V u) {
  // As in exponential_of_negative.
  const V x = max(V::broadcast(-88.0F), absolute(u) * V::broadcast(-2.0F));
  const V n = round_even(x * V::broadcast(kInverseOfLn2));
  const V r = rest_of(x, n);
  const V power = power_of_two(n);
  const V e = fma(growth_of_rest(r) * r, power, power - V::broadcast(1.0F));
  const V size = (V::zero() - e) / (V::broadcast(2.0F) + e);
  // tanh u is between u and 0: u clamped to its size has its sign.
  return min(size, max(V::zero() - size, u));
}

// cap * tanh(x / cap) (Bello et al. 2016, arXiv 1611.09940; Gemma Team 2024, arXiv 2408.00118,
// section 2): about x if that is small against the cap, never beyond the cap.
template <FloatVector V>
class SoftCap {
 public:
  // cap: above 0, and 1 / cap finite.
  explicit SoftCap(float cap) : cap_(V::broadcast(cap)), inverse_(V::broadcast(1.0F / cap)) {}
  [[gnu::always_inline]] V of(V x) const { return cap_ * hyperbolic_tangent(x * inverse_); }

 private:
  V cap_;
  V inverse_;
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_VECTORS_VECTOR_MATH_H_
