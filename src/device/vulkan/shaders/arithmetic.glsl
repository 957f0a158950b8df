// SPDX-License-Identifier: Apache-2.0
// Float arithmetic with the processor's bits on every driver (kernels/vectors/vector_math.h,
// base/float16.h). Operations that the Vulkan specification fixes are used directly: sums,
// products, comparisons, integer conversions, and integers. Operations that it leaves free (fma,
// division, root) are used only if the device gave the known answers at its start (check.h).
//
// `precise` keeps a product and a sum separate. All NaNs are equal, whatever their payload.

const uint kFusedNatively = 0u;
const uint kFusedByDouble = 1u;  // if this is compiled with DOUBLE
const uint kFusedByIntegers = 2u;
layout(constant_id = 1) const uint kFused = kFusedByIntegers;
layout(constant_id = 2) const bool kDividesNatively = false;
layout(constant_id = 3) const bool kRootsNatively = false;

const uint kSignBit = 0x80000000u;
const uint kInfinity = 0x7f800000u;
const uint kNan = 0x7fc00000u;

float product_of(float a, float b) {
  precise float p = a * b;
  return p;
}
float sum_of(float a, float b) {
  precise float s = a + b;
  return s;
}
float difference_of(float a, float b) {
  precise float d = a - b;
  return d;
}

uint magnitude_of(uint bits) { return bits & ~kSignBit; }
bool is_nan_bits(uint bits) { return magnitude_of(bits) > kInfinity; }
// Neither infinite nor NaN.
bool is_finite_bits(uint bits) { return magnitude_of(bits) < kInfinity; }

// --- 64-bit integers, the low word first --------------------------------------------------------

// n in 0..63.
uvec2 shifted_right(uvec2 v, int n) {
  if (n == 0) return v;
  if (n < 32) return uvec2((v.x >> n) | (v.y << (32 - n)), v.y >> n);
  return uvec2(v.y >> (n - 32), 0u);
}
uvec2 shifted_left(uvec2 v, int n) {
  if (n == 0) return v;
  if (n < 32) return uvec2(v.x << n, (v.y << n) | (v.x >> (32 - n)));
  return uvec2(0u, v.x << (n - 32));
}
// Whether one of the n lowest bits is set, n in 0..63.
bool has_low_bits(uvec2 v, int n) {
  uint low = n >= 32 ? v.x : v.x & ((1u << n) - 1u);
  uint high = n > 32 ? v.y & ((1u << (n - 32)) - 1u) : 0u;
  return (low | high) != 0u;
}
// Shifted right by any n; the lowest bit is set if any lost bit was.
uvec2 jammed_right(uvec2 v, int n) {
  if (n > 63) return uvec2((v.x | v.y) != 0u ? 1u : 0u, 0u);
  uvec2 shifted = shifted_right(v, n);
  if (has_low_bits(v, n)) shifted.x |= 1u;
  return shifted;
}

// --- Floats from their parts ------------------------------------------------------------------

// The float nearest to m * 2^e, ties to even, with the given sign bit; m is not 0. If m is longer
// than 24 bits, its lowest bit may stand for any number of further bits.
float rounded_float(uint sign, uvec2 m, int e) {
  int top = m.y != 0u ? 32 + findMSB(m.y) : findMSB(m.x);
  int exponent = top + e + 127;  // biased
  if (exponent >= 255) return uintBitsToFloat(sign | kInfinity);
  int shift = top - 23 + max(0, 1 - exponent);  // below 2^-126 there are fewer bits
  uint kept;
  if (shift <= 0) {
    kept = m.x << -shift;
  } else if (shift > 64) {
    return uintBitsToFloat(sign);
  } else {
    uint with_half = shifted_right(m, shift - 1).x;
    kept = with_half >> 1;
    bool half_way = (with_half & 1u) != 0u;
    if (half_way && (has_low_bits(m, shift - 1) || (kept & 1u) != 0u)) kept += 1u;
  }
  // A carry from rounding goes into the exponent; beyond the largest float to infinity.
  return uintBitsToFloat(sign | ((uint(max(exponent, 1) - 1) << 23) + kept));
}

// A finite float that is not 0 is m * 2^e with m in 2^23..2^24 - 1.
void take_apart(uint bits, out uint m, out int e) {
  uint magnitude = magnitude_of(bits);
  int exponent = int(magnitude >> 23);
  m = magnitude & 0x7fffffu;
  if (exponent == 0) {
    int up = 23 - findMSB(m);
    m <<= up;
    e = -149 - up;
  } else {
    m |= 0x800000u;
    e = exponent - 150;
  }
}

// --- a * b + c, rounded once -------------------------------------------------------------------

float fused_by_integers(float a_float, float b_float, float c_float) {
  uint a = floatBitsToUint(a_float);
  uint b = floatBitsToUint(b_float);
  uint c = floatBitsToUint(c_float);
  uint sign = (a ^ b) & kSignBit;
  uint c_sign = c & kSignBit;
  if (is_nan_bits(a) || is_nan_bits(b) || is_nan_bits(c)) return uintBitsToFloat(kNan);
  bool is_zero = magnitude_of(a) == 0u || magnitude_of(b) == 0u;
  if (!is_finite_bits(a) || !is_finite_bits(b)) {
    bool undefined = is_zero || (!is_finite_bits(c) && c_sign != sign);
    return uintBitsToFloat(undefined ? kNan : sign | kInfinity);
  }
  if (!is_finite_bits(c)) return c_float;
  if (is_zero) {
    if (magnitude_of(c) != 0u) return c_float;
    return uintBitsToFloat(sign & c_sign);
  }
  uint a_m;
  uint b_m;
  int a_e;
  int b_e;
  take_apart(a, a_m, a_e);
  take_apart(b, b_m, b_e);
  uvec2 p;
  umulExtended(a_m, b_m, p.y, p.x);  // 47 or 48 bits
  int p_e = a_e + b_e - 14;
  p = shifted_left(p, 14);  // the highest bit is bit 60 or 61
  if (magnitude_of(c) == 0u) return rounded_float(sign, p, p_e);
  uint c_m;
  int c_e;
  take_apart(c, c_m, c_e);
  uvec2 q = shifted_left(uvec2(c_m, 0u), 38);  // bit 61
  c_e -= 38;
  // Raises the smaller exponent. Bits get lost only after a shift by 14 or 38, when the other
  // number is so much larger that at most one leading bit can cancel.
  if (p_e >= c_e) {
    q = jammed_right(q, p_e - c_e);
  } else {
    p = jammed_right(p, c_e - p_e);
    p_e = c_e;
  }
  if (sign == c_sign) {
    uint carry;
    uint low = uaddCarry(p.x, q.x, carry);
    return rounded_float(sign, uvec2(low, p.y + q.y + carry), p_e);
  }
  if (p == q) return 0.0;
  bool p_is_larger = p.y > q.y || (p.y == q.y && p.x > q.x);
  uvec2 larger = p_is_larger ? p : q;
  uvec2 smaller = p_is_larger ? q : p;
  uint borrow;
  uint low = usubBorrow(larger.x, smaller.x, borrow);
  return rounded_float(p_is_larger ? sign : c_sign, uvec2(low, larger.y - smaller.y - borrow), p_e);
}

#ifdef DOUBLE
// The product is exact in double. The sum is rounded there, and its rounding error is exact (Knuth,
// The Art of Computer Programming 2, 4.2.2, theorem B). For the rounding to float just the error's
// sign is needed: the sum rounded to odd (Boldo and Melquiond 2008, "Emulation of FMA and correctly
// rounded sums: proved algorithms using rounding to odd"). The float is built from integers, since
// compilers remove a conversion to float and back.
float fused_by_double(float a, float b, float c) {
  precise double p = double(a) * double(b);
  precise double d = double(c);
  precise double s = p + d;
  precise double v = s - p;
  precise double of_p = s - v;
  precise double lost_of_p = p - of_p;
  precise double lost_of_d = d - v;
  precise double lost = lost_of_p + lost_of_d;
  uvec2 bits = unpackDouble2x32(s);
  uint sign = bits.y & kSignBit;
  uint exponent = (bits.y >> 20) & 0x7ffu;
  uvec2 m = uvec2(bits.x, bits.y & 0xfffffu);
  if (exponent == 0x7ffu) return uintBitsToFloat((m.x | m.y) != 0u ? kNan : sign | kInfinity);
  if (exponent == 0u) return uintBitsToFloat(sign);  // sums of such products are 0 or above 2^-300
  m.y |= 0x100000u;
  m = shifted_left(m, 2);
  uvec2 lost_bits = unpackDouble2x32(lost);
  if ((lost_bits.x | magnitude_of(lost_bits.y)) != 0u) {
    if ((lost_bits.y & kSignBit) == sign) {
      m.x |= 1u;
    } else {
      uint borrow;
      m.x = usubBorrow(m.x, 1u, borrow);
      m.y -= borrow;
    }
  }
  return rounded_float(sign, m, int(exponent) - 1075 - 2);
}
#endif

float fused(float a, float b, float c) {
  if (kFused == kFusedNatively) return fma(a, b, c);
#ifdef DOUBLE
  if (kFused == kFusedByDouble) return fused_by_double(a, b, c);
#endif
  return fused_by_integers(a, b, c);
}

// --- a / b and the root -------------------------------------------------------------------------

float divided_by_integers(float a_float, float b_float) {
  uint a = floatBitsToUint(a_float);
  uint b = floatBitsToUint(b_float);
  uint sign = (a ^ b) & kSignBit;
  if (is_nan_bits(a) || is_nan_bits(b)) return uintBitsToFloat(kNan);
  if (!is_finite_bits(a)) return uintBitsToFloat(is_finite_bits(b) ? sign | kInfinity : kNan);
  if (!is_finite_bits(b)) return uintBitsToFloat(sign);
  if (magnitude_of(b) == 0u) {
    return uintBitsToFloat(magnitude_of(a) == 0u ? kNan : sign | kInfinity);
  }
  if (magnitude_of(a) == 0u) return uintBitsToFloat(sign);
  uint a_m;
  uint b_m;
  int a_e;
  int b_e;
  take_apart(a, a_m, a_e);
  take_apart(b, b_m, b_e);
  // One bit before the point and 26 after it, and whether there is a remainder.
  uint quotient = 0u;
  uint rest = a_m;
  for (int i = 0; i < 27; ++i) {
    quotient <<= 1;
    if (rest >= b_m) {
      rest -= b_m;
      quotient |= 1u;
    }
    rest <<= 1;
  }
  return rounded_float(sign, uvec2((quotient << 1) | (rest != 0u ? 1u : 0u), 0u), a_e - b_e - 27);
}

float divided(float a, float b) {
  if (kDividesNatively) {
    precise float q = a / b;
    return q;
  }
  return divided_by_integers(a, b);
}

float root_by_integers(float a_float) {
  uint a = floatBitsToUint(a_float);
  if (magnitude_of(a) == 0u) return a_float;
  if (is_nan_bits(a) || (a & kSignBit) != 0u) return uintBitsToFloat(kNan);
  if (!is_finite_bits(a)) return a_float;
  uint m;
  int e;
  take_apart(a, m, e);
  if ((e & 1) != 0) {
    m <<= 1;
    e -= 1;
  }
  // Two bits of m * 2^26 (below 2^52) give one bit of its root.
  uint found = 0u;
  uint rest = 0u;
  for (int pair = 12; pair >= -13; --pair) {
    rest = (rest << 2) | (pair >= 0 ? (m >> (2 * pair)) & 3u : 0u);
    uint trial = (found << 2) | 1u;
    found <<= 1;
    if (rest >= trial) {
      rest -= trial;
      found |= 1u;
    }
  }
  return rounded_float(0u, uvec2((found << 1) | (rest != 0u ? 1u : 0u), 0u), e / 2 - 14);
}

float root(float a) {
  if (kRootsNatively) {
    precise float r = sqrt(a);
    return r;
  }
  return root_by_integers(a);
}

// --- 16-bit floats ------------------------------------------------------------------------------

float from_bf16(uint bits) { return uintBitsToFloat(bits << 16); }

uint to_bf16(float value) {
  uint bits = floatBitsToUint(value);
  if (is_nan_bits(bits)) return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

float from_f16(uint bits) {
  uint sign = (bits & 0x8000u) << 16;
  uint exponent = (bits >> 10) & 0x1fu;
  uint mantissa = bits & 0x3ffu;
  if (exponent == 0u) {  // mantissa * 2^-24, exact
    return uintBitsToFloat(sign | floatBitsToUint(product_of(float(mantissa), 5.9604644775390625e-8)));
  }
  uint wide = exponent == 0x1fu ? 0xffu : exponent + 112u;
  return uintBitsToFloat(sign | (wide << 23) | (mantissa << 13));
}

uint to_f16(float value) {
  uint bits = floatBitsToUint(value);
  uint sign = (bits >> 16) & 0x8000u;
  uint magnitude = magnitude_of(bits);
  if (magnitude > kInfinity) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520
  int exponent = int(magnitude >> 23);
  if (exponent < 102) return sign;  // below half of the smallest one, 2^-25
  if (exponent < 113) {
    uint mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    int shift = 126 - exponent;
    uint kept = mantissa >> shift;
    uint rest = mantissa & ((1u << shift) - 1u);
    uint middle = 1u << (shift - 1);
    if (rest > middle || (rest == middle && (kept & 1u) != 0u)) kept += 1u;
    return sign | kept;
  }
  uint rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return sign | ((rounded - 0x38000000u) >> 13);
}

// --- e^x (kernels/vectors/vector_math.h) ---------------------------------------------------------------

// To the nearest integer, ties to even, for |x| < 2^22.
float round_even(float x) {
  precise float up = x + 12582912.0;
  precise float rounded = up - 12582912.0;
  return rounded;
}

float power_of_two(float n) {
  precise float biased = n + 12583039.0;
  return uintBitsToFloat(floatBitsToUint(biased) << 23);
}

float rest_of(float x, float n) {
  float r = fused(n, uintBitsToFloat(0xbf317200u), x);
  return fused(n, uintBitsToFloat(0xb5bfbe8eu), r);
}

// (e^r - 1) / r
float growth_of_rest(float r) {
  float e = uintBitsToFloat(0x39500d01u);          // 1 / 5040
  e = fused(e, r, uintBitsToFloat(0x3ab60b61u));   // 1 / 720
  e = fused(e, r, uintBitsToFloat(0x3c088889u));   // 1 / 120
  e = fused(e, r, uintBitsToFloat(0x3d2aaaabu));   // 1 / 24
  e = fused(e, r, uintBitsToFloat(0x3e2aaaabu));   // 1 / 6
  e = fused(e, r, 0.5);
  return fused(e, r, 1.0);
}

float exponential_of_rest(float x, float n) {
  float r = rest_of(x, n);
  return fused(growth_of_rest(r), r, 1.0);
}

const uint kInverseOfLn2 = 0x3fb8aa3bu;

float exponential(float x) {
  if (is_nan_bits(floatBitsToUint(x))) return uintBitsToFloat(kNan);
  x = -104.0 > x ? -104.0 : x;
  x = 89.0 < x ? 89.0 : x;
  float n = round_even(product_of(x, uintBitsToFloat(kInverseOfLn2)));
  float e = exponential_of_rest(x, n);
  float first = round_even(product_of(n, 0.5));
  float rest = difference_of(n, first);
  return product_of(product_of(e, power_of_two(first)), power_of_two(rest));
}

float exponential_of_negative(float x) {
  if (is_nan_bits(floatBitsToUint(x))) return uintBitsToFloat(kNan);
  x = -88.0 > x ? -88.0 : x;
  float n = round_even(product_of(x, uintBitsToFloat(kInverseOfLn2)));
  return product_of(exponential_of_rest(x, n), power_of_two(n));
}
