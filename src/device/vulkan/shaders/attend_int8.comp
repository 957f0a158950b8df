// SPDX-License-Identifier: Apache-2.0
// Attention over keys and values in int8 (kernels/attention/int8_attention.h). Queries, and a chunk's weights
// times their values' scales, become 14-bit integers. So scores and sums of values are exact
// integers, rounded to float once.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"
#include "caps.glsl"
#include "attend.glsl"

const float kMaxWord = 16256.0;  // 127 * 128

shared int query_words[kMaxDims];
shared int weight_words[kChunk];
shared uint largest_of[64];
shared float shared_score_scale;
shared float shared_sum_scale;

// The factor from numbers to words, and the value of one word, for numbers of at most `largest`;
// zeros if the former overflows.
void word_scale(float largest, out float inverse, out float scale_of_word) {
  inverse = divided(kMaxWord, largest);
  scale_of_word = divided(largest, kMaxWord);
  if (floatBitsToUint(inverse) == kInfinity) {
    inverse = 0.0;
    scale_of_word = 0.0;
  }
}

// Cells of four have the order 0, 2, 1, 3 (kernels/attention/kv_layout.h).
int byte_of(uint word, uint i) {
  uint place = i % 4u;
  if (place == 1u || place == 2u) place = 3u - place;
  return bitfieldExtract(int(word), int(place) * 8, 8);
}

uint value_row_words() { return (head_dim + 15u) / 16u * 16u; }
// After a block's cells of keys or values.
uint scales_at() { return kChunk / 4u * value_row_words(); }

uint largest_of_all(uint mine) {
  uint lane = gl_LocalInvocationID.x;
  largest_of[lane] = mine;
  barrier();
  uint largest = 0u;
  for (uint i = 0u; i < 64u; ++i) largest = max(largest, largest_of[i]);
  barrier();
  return largest;
}

void take_query() {
  uint lane = gl_LocalInvocationID.x;
  uint mine = 0u;
  for (uint dim = lane; dim < head_dim; dim += 64u) {
    mine = max(mine, magnitude_of(floatBitsToUint(queries[query_at + dim])));
  }
  uint largest = largest_of_all(mine);
  bool tainted = !is_finite_bits(largest);
  float inverse;
  float scale_of_word;
  word_scale(uintBitsToFloat(largest), inverse, scale_of_word);
  for (uint dim = lane; dim < head_dim; dim += 64u) {
    float value = tainted ? 0.0 : product_of(queries[query_at + dim], inverse);
    query_words[dim] = int(round_even(value));
  }
  if (lane == 0u) {
    shared_score_scale = product_of(tainted ? uintBitsToFloat(kNan) : scale_of_word, scale);
  }
  barrier();
}

float score_of(uint lane) {
  uint at = keys_at[lane] + tokens[lane];
  int dot = 0;
  for (uint dim = 0u; dim < head_dim; ++dim) {
    dot += query_words[dim] * byte_of(cache[at + dim / 4u * kChunk], dim);
  }
  float key_scale = uintBitsToFloat(cache[keys_at[lane] + scales_at() + tokens[lane]]);
  return product_of(product_of(float(dot), key_scale), shared_score_scale);
}

void take_weights(uint n) {
  uint lane = gl_LocalInvocationID.x;
  float value_scale = 0.0;
  if (lane < n) {
    value_scale =
        uintBitsToFloat(cache[keys_at[lane] + values_behind + scales_at() + tokens[lane]]);
  }
  bool taints = !is_finite_bits(floatBitsToUint(value_scale));
  float product = product_of(weights[lane], value_scale);
  if (!(product > 0.0)) product = 0.0;  // replaces NaN by 0
  uint largest = largest_of_all(floatBitsToUint(product));
  bool tainted = largest_of_all(taints ? 1u : 0u) != 0u;
  float inverse;
  float scale_of_word;
  word_scale(uintBitsToFloat(largest), inverse, scale_of_word);
  weight_words[lane] = int(round_even(product_of(product, inverse)));
  if (lane == 0u) shared_sum_scale = tainted ? uintBitsToFloat(kNan) : scale_of_word;
  barrier();
}

float with_chunk(float so_far, uint dim, uint n) {
  int dot = 0;
  for (uint i = 0u; i < n; ++i) {
    uint at = keys_at[i] + values_behind + tokens[i] / 4u * value_row_words() + dim;
    dot += weight_words[i] * byte_of(cache[at], tokens[i]);
  }
  return fused(float(dot), shared_sum_scale, so_far);
}

void main() { attend(); }
