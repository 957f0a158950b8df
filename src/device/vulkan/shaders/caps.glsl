// SPDX-License-Identifier: Apache-2.0
// cap * tanh(x / cap) (kernels/vectors/vector_math.h, SoftCap). Included after arithmetic.glsl.

float hyperbolic_tangent(float u) {
  if (is_nan_bits(floatBitsToUint(u))) return uintBitsToFloat(kNan);
  float x = product_of(uintBitsToFloat(magnitude_of(floatBitsToUint(u))), -2.0);
  x = -88.0 > x ? -88.0 : x;
  float n = round_even(product_of(x, uintBitsToFloat(kInverseOfLn2)));
  float r = rest_of(x, n);
  float power = power_of_two(n);
  float e = fused(product_of(growth_of_rest(r), r), power, difference_of(power, 1.0));
  float size = divided(difference_of(0.0, e), sum_of(2.0, e));
  float least = difference_of(0.0, size);
  float clamped = least > u ? least : u;
  return size < clamped ? size : clamped;
}

// inverse: 1 / cap.
float capped(float x, float cap, float inverse) {
  return product_of(cap, hyperbolic_tangent(product_of(x, inverse)));
}
