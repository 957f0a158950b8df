// SPDX-License-Identifier: Apache-2.0
// Products with int4 weights (kernels/layout.h). Per group: [4][16][4] bytes with quad r in their
// low and quad r + 4 in their high halves, then f16 scales and minimums, [16] each.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"
#include "dots.glsl"
#include "product.glsl"

layout(std430, binding = 4) readonly buffer Sums { float scaled_sums[]; };  // (groups, slots)
layout(std430, binding = 5) writeonly buffer Y { float y[]; };              // (rows, y_stride)

const uint kWordsOfGroup = 80u;
const uint kCodeWords = 64u;
const uint kScaleWords = 8u;
const uint kLowHalves = 0x0f0f0f0fu;

uint group_at(uint tile, uint group) {
  return (tile * ((k + 31u) / 32u) + group) * kWordsOfGroup;
}

int group_dot(uint tile, uint group, uint column, uint row) {
  uint codes = group_at(tile, group) + column;
  uint inputs = (group * slots + row) * kGroupWords;
  int total = 0;
  for (uint quad = 0u; quad < kGroupWords / 2u; ++quad) {
    uint both = tiles[codes + quad * kColumns];
    total += dot_of(both & kLowHalves, values[inputs + quad]);
    total += dot_of((both >> 4) & kLowHalves, values[inputs + quad + kGroupWords / 2u]);
  }
  return total;
}

float add_group(uint tile, uint group, uint column, uint row, float dot, float sum) {
  uint scales = group_at(tile, group) + kCodeWords;
  uint input_at = group * slots + row;
  float scale = from_f16(half_word(scales, column));
  float minimum = from_f16(half_word(scales + kScaleWords, column));
  sum = fused(dot, product_of(scale, x_scales[input_at]), sum);
  return fused(scaled_sums[input_at], minimum, sum);
}

void store(uint column, uint row, float value) { y[row * y_stride + y_first + column] = value; }

void main() { multiply(); }
