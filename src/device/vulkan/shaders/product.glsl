// SPDX-License-Identifier: Apache-2.0
// y = x W^T for one tile of 16 outputs and a block of rows (kernels/products.h, multiply_groups).
//
// Lanes compute the exact dot products of several groups at once. Then one lane per output adds
// them group by group, with one fused multiply-add each, so the order of float additions is the
// processor's. It does not matter which rows are computed together. The including file defines a
// group's layout in a tile:
//   int group_dot(uint tile, uint group, uint column, uint row)   exact, below 2^24
//   float add_group(uint tile, uint group, uint column, uint row, float dot, float sum)

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kRowsTogether = 1u;
layout(push_constant) uniform Numbers {
  uint n_columns;
  uint k;
  uint slots;
  uint max_rows;
  uint y_stride;
  uint y_first;
};
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) readonly buffer Tiles { uint tiles[]; };    // whole tiles
layout(std430, binding = 2) readonly buffer Values { uint values[]; };  // int8 (groups, slots, 32)
layout(std430, binding = 3) readonly buffer Scales { float x_scales[]; };  // (groups, slots)

const uint kLanes = 64u;
const uint kColumns = 16u;
const uint kGroupWords = 8u;      // words of one row's inputs
const uint kGroupsTogether = 8u;  // per iteration
shared int dots[kGroupsTogether * kColumns * kRowsTogether];
const uint kOutputsOfLane = (kColumns * kRowsTogether + kLanes - 1u) / kLanes;

// A column's 16 bits in a row of 16 such numbers.
uint half_word(uint first_word, uint column) {
  return bitfieldExtract(tiles[first_word + column / 2u], int(column % 2u) * 16, 16);
}

int group_dot(uint tile, uint group, uint column, uint row);
float add_group(uint tile, uint group, uint column, uint row, float dot, float sum);
void store(uint column, uint row, float value);

void multiply() {
  uint lane = gl_LocalInvocationID.x;
  uint tile = gl_WorkGroupID.x;
  uint first_row = gl_WorkGroupID.y * kRowsTogether;
  uint n_rows = min(facts[0], max_rows);
  if (first_row >= n_rows) return;
  uint rows_here = min(n_rows - first_row, kRowsTogether);
  uint n_groups = (k + 31u) / 32u;
  float sums[kOutputsOfLane];
  for (uint i = 0u; i < kOutputsOfLane; ++i) sums[i] = 0.0;
  for (uint begin = 0u; begin < n_groups; begin += kGroupsTogether) {
    uint here = min(n_groups - begin, kGroupsTogether);
    for (uint at = lane; at < here * kColumns; at += kLanes) {
      for (uint row = 0u; row < rows_here; ++row) {
        dots[row * kGroupsTogether * kColumns + at] =
            group_dot(tile, begin + at / kColumns, at % kColumns, first_row + row);
      }
    }
    barrier();
    for (uint i = 0u; i < kOutputsOfLane; ++i) {
      uint output_at = lane + i * kLanes;
      uint column = output_at % kColumns;
      uint row = output_at / kColumns;
      if (row >= rows_here) continue;
      for (uint group = 0u; group < here; ++group) {
        int dot = dots[(row * kGroupsTogether + group) * kColumns + column];
        sums[i] = add_group(tile, begin + group, column, first_row + row, float(dot), sums[i]);
      }
    }
    barrier();
  }
  for (uint i = 0u; i < kOutputsOfLane; ++i) {
    uint output_at = lane + i * kLanes;
    uint row = output_at / kColumns;
    uint column = tile * kColumns + output_at % kColumns;
    if (row < rows_here && column < n_columns) store(column, first_row + row, sums[i]);
  }
}
