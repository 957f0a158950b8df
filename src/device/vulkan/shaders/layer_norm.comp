// SPDX-License-Identifier: Apache-2.0
// Subtracts a row's mean and divides by its standard deviation (kernels/rows.h, layer_norm).
// Sixteen lanes add up their own elements in order, as the processor's vectors do; then all lanes
// scale.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Numbers {
  uint n;
  uint max_rows;
  float epsilon;
  uint has_bias;
  uint picks;
};
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) readonly buffer Picked { uint picked[]; };   // (rows), if picks is 1
layout(std430, binding = 2) readonly buffer X { float x[]; };            // (any, n)
layout(std430, binding = 3) readonly buffer Weight { float weight[]; };  // (n)
layout(std430, binding = 4) readonly buffer Bias { float bias[]; };      // (n), if has_bias is 1
layout(std430, binding = 5) writeonly buffer Y { float y[]; };           // (rows, n)

const uint kVectorLanes = 16u;
shared float of_lanes[kVectorLanes];
shared float mean_of_row;
shared float factor_of_row;

// Computed by one lane from all lanes' sums.
float tree_sum() {
  float all[kVectorLanes];
  for (uint i = 0u; i < kVectorLanes; ++i) all[i] = of_lanes[i];
  for (uint width = kVectorLanes / 2u; width > 0u; width /= 2u) {
    for (uint i = 0u; i < width; ++i) all[i] = sum_of(all[i], all[i + width]);
  }
  return all[0];
}

void main() {
  uint lane = gl_LocalInvocationID.x;
  uint row = gl_WorkGroupID.x;
  if (row >= min(facts[0], max_rows)) return;
  uint first = (picks != 0u ? picked[row] : row) * n;
  if (lane < kVectorLanes) {
    float sum = 0.0;
    for (uint i = lane; i < n; i += kVectorLanes) sum = sum_of(sum, x[first + i]);
    of_lanes[lane] = sum;
  }
  barrier();
  if (lane == 0u) mean_of_row = divided(tree_sum(), float(n));
  barrier();
  float mean = mean_of_row;
  if (lane < kVectorLanes) {
    float squares = 0.0;
    for (uint i = lane; i < n; i += kVectorLanes) {
      float centred = difference_of(x[first + i], mean);
      squares = fused(centred, centred, squares);
    }
    of_lanes[lane] = squares;
  }
  barrier();
  if (lane == 0u) {
    float variance = divided(tree_sum(), float(n));
    factor_of_row = divided(1.0, root(sum_of(variance, epsilon)));
  }
  barrier();
  float factor = factor_of_row;
  for (uint i = lane; i < n; i += 64u) {
    float scaled = product_of(difference_of(x[first + i], mean), factor);
    y[row * n + i] = fused(weight[i], scaled, has_bias != 0u ? bias[i] : 0.0);
  }
}
