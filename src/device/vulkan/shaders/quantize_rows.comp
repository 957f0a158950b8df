// SPDX-License-Identifier: Apache-2.0
// Quantises rows to int8 by groups of 32 (kernels/rows.h, quantize_row). Eight lanes process a
// group, four elements each: one word of its values.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Numbers {
  uint k;
  uint slots;
  uint max_rows;
};
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) readonly buffer X { float x[]; };             // (rows, k)
layout(std430, binding = 2) writeonly buffer Values { uint values[]; };   // int8 (groups, slots, 32)
layout(std430, binding = 3) writeonly buffer Scales { float scales[]; };  // (groups, slots)
layout(std430, binding = 4) writeonly buffer Sums { int sums[]; };        // (groups, slots)
layout(std430, binding = 5) writeonly buffer Scaled { float scaled_sums[]; };  // (groups, slots)

const uint kLanesOfGroup = 8u;
shared uint largest_of[64];
shared int sum_of_lane[64];

void main() {
  uint lane = gl_LocalInvocationID.x;
  uint row = gl_WorkGroupID.y;
  if (row >= min(facts[0], max_rows)) return;
  uint n_groups = (k + 31u) / 32u;
  uint group = gl_WorkGroupID.x * (64u / kLanesOfGroup) + lane / kLanesOfGroup;
  uint quad = lane % kLanesOfGroup;
  bool is_there = group < n_groups;

  // Magnitudes of floats order like their bits; infinity and NaN come last.
  float elements[4];
  uint largest = 0u;
  for (uint i = 0u; i < 4u; ++i) {
    uint at = group * 32u + quad * 4u + i;
    elements[i] = is_there && at < k ? x[row * k + at] : 0.0;
    largest = max(largest, magnitude_of(floatBitsToUint(elements[i])));
  }
  largest_of[lane] = largest;
  barrier();
  uint first_lane = lane / kLanesOfGroup * kLanesOfGroup;
  for (uint i = 0u; i < kLanesOfGroup; ++i) largest = max(largest, largest_of[first_lane + i]);

  bool tainted = !is_finite_bits(largest);
  float inverse = divided(127.0, uintBitsToFloat(largest));
  bool zero = tainted || !is_finite_bits(floatBitsToUint(inverse));
  uint word = 0u;
  int sum = 0;
  for (uint i = 0u; i < 4u; ++i) {
    int q = zero ? 0 : int(round_even(product_of(elements[i], inverse)));
    word |= (uint(q) & 0xffu) << (8u * i);
    sum += q;
  }
  sum_of_lane[lane] = sum;
  barrier();
  if (!is_there) return;
  uint place = group * slots + row;
  values[place * kLanesOfGroup + quad] = word;
  if (quad != 0u) return;
  int total = 0;
  for (uint i = 0u; i < kLanesOfGroup; ++i) total += sum_of_lane[first_lane + i];
  float scale = divided(uintBitsToFloat(largest), 127.0);
  if (zero) scale = tainted ? uintBitsToFloat(kNan) : 0.0;
  scales[place] = scale;
  sums[place] = total;
  scaled_sums[place] = zero ? scale : product_of(float(total), scale);
}
