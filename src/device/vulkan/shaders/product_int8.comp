// SPDX-License-Identifier: Apache-2.0
// Products with int8 weights (kernels/layout.h). Per two groups: 2 x [8][16][4] bytes, then their
// f16 scales, 2 x [16].
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"
#include "dots.glsl"
#include "product.glsl"

layout(std430, binding = 4) writeonly buffer Y { float y[]; };  // (rows, y_stride)

const uint kPairWords = 272u;
const uint kCodeWords = 128u;  // per group
const uint kScaleWords = 8u;

uint pair_at(uint tile, uint group) {
  uint n_pairs = ((k + 31u) / 32u + 1u) / 2u;
  return (tile * n_pairs + group / 2u) * kPairWords;
}

int group_dot(uint tile, uint group, uint column, uint row) {
  uint codes = pair_at(tile, group) + group % 2u * kCodeWords + column;
  uint inputs = (group * slots + row) * kGroupWords;
  int total = 0;
  for (uint quad = 0u; quad < kGroupWords; ++quad) {
    total += dot_of(tiles[codes + quad * kColumns], values[inputs + quad]);
  }
  return total;
}

float add_group(uint tile, uint group, uint column, uint row, float dot, float sum) {
  uint scales = pair_at(tile, group) + 2u * kCodeWords + group % 2u * kScaleWords;
  float scale = from_f16(half_word(scales, column));
  return fused(dot, product_of(scale, x_scales[group * slots + row]), sum);
}

void store(uint column, uint row, float value) { y[row * y_stride + y_first + column] = value; }

void main() { multiply(); }
