// SPDX-License-Identifier: Apache-2.0
// x = activation(x), for MLPs without a gate.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"
#include "activation.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Numbers {
  uint n;
  uint max_rows;
};
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) buffer X { float x[]; };  // (rows, n)

void main() {
  uint i = gl_GlobalInvocationID.x;
  uint row = gl_WorkGroupID.y;
  if (row >= min(facts[0], max_rows) || i >= n) return;
  uint at = row * n + i;
  x[at] = activated(x[at]);
}
