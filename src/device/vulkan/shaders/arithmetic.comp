// SPDX-License-Identifier: Apache-2.0
// Single operations (kernel_steps.h, Function).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kFunction = 0u;
layout(push_constant) uniform Numbers {
  uint n;
};
layout(std430, binding = 0) readonly buffer A { uint a_of[]; };
layout(std430, binding = 1) readonly buffer B { uint b_of[]; };
layout(std430, binding = 2) readonly buffer C { uint c_of[]; };
layout(std430, binding = 3) writeonly buffer Y { uint y_of[]; };

uint answer(uint a_bits, uint b_bits, uint c_bits) {
  float a = uintBitsToFloat(a_bits);
  float b = uintBitsToFloat(b_bits);
  float c = uintBitsToFloat(c_bits);
  uint low_bits = a_bits & 0xffffu;
  switch (kFunction) {
    case 0u:
      return floatBitsToUint(fused(a, b, c));
    case 1u:
      return floatBitsToUint(divided(a, b));
    case 2u:
      return floatBitsToUint(root(a));
    case 3u:
      return floatBitsToUint(exponential(a));
    case 4u:
      return floatBitsToUint(exponential_of_negative(a));
    case 5u:
      return floatBitsToUint(round_even(a));
    case 6u:
      return floatBitsToUint(from_f16(low_bits));
    case 7u:
      return to_f16(a);
    case 8u:
      return floatBitsToUint(from_bf16(low_bits));
    case 9u:
      return to_bf16(a);
    case 10u:
      return floatBitsToUint(fused_by_integers(a, b, c));
    case 11u:
      return floatBitsToUint(divided_by_integers(a, b));
    case 12u:
      return floatBitsToUint(root_by_integers(a));
    case 13u:
      return floatBitsToUint(fma(a, b, c));
    case 14u: {
      precise float q = a / b;
      return floatBitsToUint(q);
    }
    case 15u: {
      precise float r = sqrt(a);
      return floatBitsToUint(r);
    }
    case 16u:
      return floatBitsToUint(product_of(a, b));
    default:
      return floatBitsToUint(sum_of(a, b));
  }
}

void main() {
  uint i = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 64u + gl_LocalInvocationID.x;
  if (i < n) y_of[i] = answer(a_of[i], b_of[i], c_of[i]);
}
