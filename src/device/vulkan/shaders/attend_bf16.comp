// SPDX-License-Identifier: Apache-2.0
// Attention over keys and values in bf16 (kernels/attention/float_attention.h): widened to floats, then as in
// attend_f32.comp.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"
#include "caps.glsl"
#include "attend.glsl"

void take_query() {}

// The half of a word with that element: cells of two.
float half_of(uint word, uint i) { return from_bf16((word >> (i % 2u * 16u)) & 0xffffu); }

float score_of(uint lane) {
  uint at = keys_at[lane] + tokens[lane];
  float dot = 0.0;
  for (uint dim = 0u; dim < head_dim; ++dim) {
    dot = fused(queries[query_at + dim], half_of(cache[at + dim / 2u * kChunk], dim), dot);
  }
  return product_of(dot, scale);
}

void take_weights(uint n) {}

float with_chunk(float so_far, uint dim, uint n) {
  uint row_words = (head_dim + 15u) / 16u * 16u;
  float dot = 0.0;
  for (uint i = 0u; i < n; ++i) {
    uint at = keys_at[i] + values_behind + tokens[i] / 2u * row_words + dim;
    dot = fused(weights[i], half_of(cache[at], tokens[i]), dot);
  }
  return sum_of(so_far, dot);
}

void main() { attend(); }
