// SPDX-License-Identifier: Apache-2.0
// Copies some columns of rows to others, for all rows or for picked ones. Words of any type.
#version 450

layout(local_size_x = 64) in;
layout(push_constant) uniform Numbers {
  uint from_stride;
  uint from_first;
  uint to_stride;
  uint to_first;
  uint n;
  uint max_rows;
  uint picks;
};
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) readonly buffer Picked { uint picked[]; };  // (rows), if picks is 1
layout(std430, binding = 2) readonly buffer From { uint from[]; };      // (any, from_stride)
layout(std430, binding = 3) buffer To { uint to[]; };                   // (rows, to_stride)

void main() {
  uint i = gl_GlobalInvocationID.x;
  uint row = gl_WorkGroupID.y;
  if (row >= min(facts[0], max_rows) || i >= n) return;
  uint source = picks != 0u ? picked[row] : row;
  to[row * to_stride + to_first + i] = from[source * from_stride + from_first + i];
}
