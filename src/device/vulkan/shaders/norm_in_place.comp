// SPDX-License-Identifier: Apache-2.0
// Divides parts of rows (heads, groups, or whole rows) by their root mean square, in place
// (kernels/rows.h, rms_norm). As rms_norm.comp.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Numbers {
  uint stride;
  uint first;
  uint n;
  uint n_pieces;
  uint weight_step;
  uint max_rows;
  float epsilon;
};
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) buffer X { float x[]; };  // (rows, stride)
layout(std430, binding = 2) readonly buffer Weight { float weight[]; };

const uint kVectorLanes = 16u;
shared float squares_of[kVectorLanes];
shared float factor_of_piece;

void main() {
  uint lane = gl_LocalInvocationID.x;
  uint row = gl_WorkGroupID.x;
  uint piece = gl_WorkGroupID.y;
  if (row >= min(facts[0], max_rows)) return;
  uint begin = row * stride + first + piece * n;
  if (lane < kVectorLanes) {
    float squares = 0.0;
    for (uint i = lane; i < n; i += kVectorLanes) {
      float value = x[begin + i];
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
    factor_of_piece = divided(1.0, root(sum_of(mean, epsilon)));
  }
  barrier();
  float factor = factor_of_piece;
  for (uint i = lane; i < n; i += 64u) {
    float scaled = product_of(x[begin + i], factor);
    x[begin + i] = product_of(weight[piece * weight_step + i], scaled);
  }
}
