// SPDX-License-Identifier: Apache-2.0
// Divides a row by its root mean square (kernels/rows.h, rms_norm). Sixteen lanes add the squares,
// each those of its own elements in order, like the processor's vectors; then all lanes scale.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Numbers {
  uint n;
  uint max_rows;
  float epsilon;
};
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) readonly buffer X { float x[]; };            // (rows, n)
layout(std430, binding = 2) readonly buffer Weight { float weight[]; };  // (n)
layout(std430, binding = 3) writeonly buffer Y { float y[]; };           // (rows, n)

const uint kVectorLanes = 16u;
shared float squares_of[kVectorLanes];
shared float factor_of_row;

void main() {
  uint lane = gl_LocalInvocationID.x;
  uint row = gl_WorkGroupID.x;
  if (row >= min(facts[0], max_rows)) return;
  uint first = row * n;
  if (lane < kVectorLanes) {
    float squares = 0.0;
    for (uint i = lane; i < n; i += kVectorLanes) {
      float value = x[first + i];
      squares = fused(value, value, squares);
    }
    squares_of[lane] = squares;
  }
  barrier();
  if (lane == 0u) {
    float squares[kVectorLanes];
    for (uint i = 0u; i < kVectorLanes; ++i) squares[i] = squares_of[i];
    for (uint width = kVectorLanes / 2u; width > 0u; width /= 2u) {
      for (uint i = 0u; i < width; ++i) squares[i] = sum_of(squares[i], squares[i + width]);
    }
    float mean = divided(squares[0], float(n));
    factor_of_row = divided(1.0, root(sum_of(mean, epsilon)));
  }
  barrier();
  float factor = factor_of_row;
  for (uint i = lane; i < n; i += 64u) {
    y[first + i] = product_of(weight[i], product_of(x[first + i], factor));
  }
}
