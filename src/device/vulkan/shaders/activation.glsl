// SPDX-License-Identifier: Apache-2.0
// Activations of MLPs (kernels/rows.h, silu_multiply, gelu_multiply, gelu_erf_multiply). Included
// after arithmetic.glsl.

layout(constant_id = 0) const uint kActivation = 0u;  // GateActivation
const uint kGeluTanh = 1u;
const uint kGeluErf = 2u;

// erfc(x / sqrt(2)) / 2 for 0 <= x <= 15 (kernels/vectors/vector_math.h).
float normal_tail(float x) {
  float square = product_of(x, x);
  float lost = fused(x, x, difference_of(0.0, square));
  float e = exponential(product_of(square, -0.5));
  float bell = fused(e, product_of(lost, -0.5), e);
  float t = divided(1.0, fused(x, uintBitsToFloat(0x3e89374cu), 1.0));
  float p = uintBitsToFloat(0x3cf78004u);  // 0.0302124098
  p = fused(p, t, uintBitsToFloat(0xbe0b262au));  // -0.135887772
  p = fused(p, t, uintBitsToFloat(0x3e45e547u));  // 0.193257436
  p = fused(p, t, uintBitsToFloat(0xbdbd805bu));  // -0.0925299749
  p = fused(p, t, uintBitsToFloat(0x3dfb79f4u));  // 0.122791201
  p = fused(p, t, uintBitsToFloat(0x3d878aecu));  // 0.0661829412
  p = fused(p, t, uintBitsToFloat(0x3dd1d4d6u));  // 0.102456734
  p = fused(p, t, uintBitsToFloat(0x3dda49b0u));  // 0.10658586
  p = fused(p, t, uintBitsToFloat(0x3ddafebau));  // 0.106931165
  return product_of(bell, product_of(p, t));
}

float gelu_erf(float value) {
  float size = uintBitsToFloat(magnitude_of(floatBitsToUint(value)));
  size = 15.0 < size ? 15.0 : size;
  float above = 0.0 > value ? 0.0 : value;
  return fused(difference_of(0.0, size), normal_tail(size), above);
}

float activated(float value) {
  if (kActivation == kGeluErf) return gelu_erf(value);
  float inner = difference_of(0.0, value);
  if (kActivation == kGeluTanh) {
    float cubic = product_of(uintBitsToFloat(0x3d372713u), value);  // 0.044715
    inner = product_of(value, fused(cubic, value, 1.0));
    inner = product_of(inner, uintBitsToFloat(0xbfcc422au));  // -2 sqrt(2 / pi)
  }
  return divided(value, sum_of(1.0, exponential(inner)));
}
