// gate = gate / (1 + e^-gate) * up (kernels/rows.h, silu_multiply).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Numbers {
  uint n;
  uint most_rows;
};
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) buffer Gate { float gate[]; };       // (rows, n)
layout(std430, binding = 2) readonly buffer Up { float up[]; };  // (rows, n)

void main() {
  uint i = gl_GlobalInvocationID.x;
  uint row = gl_WorkGroupID.y;
  if (row >= min(facts[0], most_rows) || i >= n) return;
  uint at = row * n + i;
  float value = gate[at];
  float silu = divided(value, sum_of(1.0, exponential(difference_of(0.0, value))));
  gate[at] = product_of(silu, up[at]);
}
