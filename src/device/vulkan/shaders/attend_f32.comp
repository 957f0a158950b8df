// SPDX-License-Identifier: Apache-2.0
// Attention over keys and values in f32 (kernels/attention/float_attention.h): a score sums the products of
// its dims in order, a chunk's sum those of its tokens in order.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"
#include "caps.glsl"
#include "attend.glsl"

void take_query() {}

float score_of(uint lane) {
  uint at = keys_at[lane] + tokens[lane];
  float dot = 0.0;
  for (uint dim = 0u; dim < head_dim; ++dim) {
    dot = fused(queries[query_at + dim], uintBitsToFloat(cache[at + dim * kChunk]), dot);
  }
  return product_of(dot, scale);
}

void take_weights(uint n) {}

float with_chunk(float so_far, uint dim, uint n) {
  uint row_words = (head_dim + 15u) / 16u * 16u;
  float dot = 0.0;
  for (uint i = 0u; i < n; ++i) {
    uint at = keys_at[i] + values_behind + tokens[i] * row_words + dim;
    dot = fused(weights[i], uintBitsToFloat(cache[at]), dot);
  }
  return sum_of(so_far, dot);
}

void main() { attend(); }
