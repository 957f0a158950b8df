// SPDX-License-Identifier: Apache-2.0
// Merges the results of a row's splits into its attention (kernels/attention/attention.h, merge_split and
// finish_attention), in their order; each lane some dims.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Numbers {
  uint n_heads;
  uint head_dim;
  uint max_rows;
  uint max_splits;
};
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) readonly buffer Rows { uvec4 rows[]; };
layout(std430, binding = 2) readonly buffer Sums { float sums[]; };
layout(std430, binding = 3) readonly buffer States { vec2 states[]; };
layout(std430, binding = 4) writeonly buffer Out { float attention[]; };  // (rows, heads, dims)

const uint kSplit = 1024u;
const uint kMinusInfinity = 0xff800000u;

void main() {
  uint head = gl_WorkGroupID.x;
  uint row = gl_WorkGroupID.y;
  if (row >= min(facts[0], max_rows)) return;
  uint n_splits = (rows[row].x + kSplit - 1u) / kSplit;
  uint first_split = rows[row].y / kSplit;
  for (uint dim = gl_LocalInvocationID.x; dim < head_dim; dim += 64u) {
    uint at = (row * max_splits + first_split) * n_heads + head;
    float sum = sums[at * head_dim + dim];
    vec2 state = states[at];  // highest score, total
    for (uint split = first_split + 1u; split < n_splits; ++split) {
      at += n_heads;
      vec2 further = states[at];
      float highest = state.x < further.x ? further.x : state.x;
      float beside = floatBitsToUint(highest) == kMinusInfinity ? 0.0 : highest;
      float before = exponential_of_negative(difference_of(state.x, beside));
      float behind = exponential_of_negative(difference_of(further.x, beside));
      sum = fused(sums[at * head_dim + dim], behind, product_of(sum, before));
      state.y = fused(further.y, behind, product_of(state.y, before));
      state.x = highest;
    }
    attention[(row * n_heads + head) * head_dim + dim] = product_of(sum, divided(1.0, state.y));
  }
}
