// SPDX-License-Identifier: Apache-2.0
// Stores keys and values of new tokens in the cache (kernels/rows.h, store_key and store_value). A
// workgroup handles one head's keys, or values, of a row.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"
#include "cache.glsl"

layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) readonly buffer Places { uvec2 places[]; };  // TokenPlace (rows)
layout(std430, binding = 2) readonly buffer Keys { float keys[]; };      // (rows, kv heads, dims)
layout(std430, binding = 3) readonly buffer Values { float values[]; };  // (rows, kv heads, dims)
layout(std430, binding = 4) buffer Cache { uint cache[]; };

shared uint largest_of[64];

// Other rows may write the word's other elements concurrently.
void put(uint word, uint index, uint element) {
  if (kKind != kBf16 && kKind != kInt8) {
    cache[word] = element;
    return;
  }
  uint mask = (1u << element_bits()) - 1u;
  atomicAnd(cache[word], ~(mask << bits_at(index)));
  atomicOr(cache[word], (element & mask) << bits_at(index));
}

void main() {
  uint lane = gl_LocalInvocationID.x;
  uint row = gl_WorkGroupID.y;
  if (row >= min(facts[0], max_rows)) return;
  bool is_key = gl_WorkGroupID.x < n_kv_heads;
  uint head = gl_WorkGroupID.x % n_kv_heads;
  uint first = (row * heads_of_row + first_head + head) * head_dim;
  uint block = places[row].x + gl_WorkGroupID.x * block_words;
  uint token = places[row].y;

  // int8, as in quantize_rows.comp. Magnitudes of floats order like their bits.
  bool zero = false;
  float inverse = 0.0;
  if (kKind == kInt8) {
    uint largest = 0u;
    for (uint dim = lane; dim < head_dim; dim += 64u) {
      float value = is_key ? keys[first + dim] : values[first + dim];
      largest = max(largest, magnitude_of(floatBitsToUint(value)));
    }
    largest_of[lane] = largest;
    barrier();
    for (uint i = 0u; i < 64u; ++i) largest = max(largest, largest_of[i]);
    bool tainted = !is_finite_bits(largest);
    inverse = divided(127.0, uintBitsToFloat(largest));
    zero = tainted || !is_finite_bits(floatBitsToUint(inverse));
    float scale = divided(uintBitsToFloat(largest), 127.0);
    if (zero) scale = tainted ? uintBitsToFloat(kNan) : 0.0;
    if (lane == 0u) cache[block + scale_word(token)] = floatBitsToUint(scale);
  }
  for (uint dim = lane; dim < head_dim; dim += 64u) {
    float value = is_key ? keys[first + dim] : values[first + dim];
    uint element = floatBitsToUint(value);
    if (kKind == kBf16) element = to_bf16(value);
    if (kKind == kInt8) {
      element = zero ? 0u : uint(int(round_even(product_of(value, inverse))));
    }
    if (is_key) {
      put(block + key_word(token, dim), dim, element);
    } else {
      put(block + value_word(token, dim), token, element);
    }
  }
}
