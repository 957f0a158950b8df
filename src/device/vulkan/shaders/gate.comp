// SPDX-License-Identifier: Apache-2.0
// y = activation(gate) * up.
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
layout(std430, binding = 1) readonly buffer Gate { float gate[]; };  // (rows, n)
layout(std430, binding = 2) readonly buffer Up { float up[]; };      // (rows, n)
layout(std430, binding = 3) writeonly buffer Y { float y[]; };       // (rows, n)

void main() {
  uint i = gl_GlobalInvocationID.x;
  uint row = gl_WorkGroupID.y;
  if (row >= min(facts[0], max_rows) || i >= n) return;
  uint at = row * n + i;
  y[at] = product_of(activated(gate[at]), up[at]);
}
