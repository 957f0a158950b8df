// SPDX-License-Identifier: Apache-2.0
// Adds a bias to some columns of all rows (kernels/rows.h, add_to).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Numbers {
  uint stride;
  uint first;
  uint n;
  uint max_rows;
};
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) buffer X { float x[]; };                 // (rows, stride)
layout(std430, binding = 2) readonly buffer Bias { float bias[]; };  // (n)

void main() {
  uint i = gl_GlobalInvocationID.x;
  uint row = gl_WorkGroupID.y;
  if (row >= min(facts[0], max_rows) || i >= n) return;
  uint at = row * stride + first + i;
  x[at] = sum_of(x[at], bias[i]);
}
