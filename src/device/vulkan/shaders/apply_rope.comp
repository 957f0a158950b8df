// SPDX-License-Identifier: Apache-2.0
// Rotates the pairs (x[i], x[i + half]) of each head by a row's angles (kernels/rows.h, apply_rope).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Numbers {
  uint n_heads;
  uint head_dim;
  uint half_dim;
  uint max_rows;
};
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) buffer X { float x[]; };  // (rows, n_heads, head_dim)
layout(std430, binding = 2) readonly buffer Cosines { float cosines[]; };  // (rows, half)
layout(std430, binding = 3) readonly buffer Sines { float sines[]; };      // (rows, half)

void main() {
  uint at = gl_GlobalInvocationID.x;
  uint row = gl_WorkGroupID.y;
  if (row >= min(facts[0], max_rows) || at >= n_heads * half_dim) return;
  uint i = at % half_dim;
  uint first_at = (row * n_heads + at / half_dim) * head_dim + i;
  uint second_at = first_at + half_dim;
  float first = x[first_at];
  float second = x[second_at];
  float cosine = cosines[row * half_dim + i];
  float sine = sines[row * half_dim + i];
  x[first_at] = difference_of(product_of(first, cosine), product_of(second, sine));
  x[second_at] = sum_of(product_of(second, cosine), product_of(first, sine));
}
