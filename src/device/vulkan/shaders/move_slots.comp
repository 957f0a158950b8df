// SPDX-License-Identifier: Apache-2.0
// Moves keys and values from place to place, in order (kernels/attention/kv_layout.h, copy_key and
// copy_value). A workgroup handles one head's keys, or values, of all moves; a lane the same words
// of each, so that the order is kept.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "cache.glsl"

layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) readonly buffer Moves { uvec4 moves[]; };  // TokenMove
layout(std430, binding = 2) buffer Cache { uint cache[]; };

void main() {
  uint lane = gl_LocalInvocationID.x;
  uint n_moves = min(facts[0], max_rows);
  bool is_key = gl_WorkGroupID.x < n_kv_heads;
  uint block = gl_WorkGroupID.x * block_words;
  uint n_columns = is_key ? (head_dim + cell_elements() - 1u) / cell_elements() : head_dim;
  uint mask = element_bits() == 32u ? 0xffffffffu : (1u << element_bits()) - 1u;
  for (uint column = lane; column < n_columns; column += 64u) {
    for (uint i = 0u; i < n_moves; ++i) {
      uvec4 move = moves[i];
      if (is_key) {  // a cell of a token's dims
        uint dim = column * cell_elements();
        cache[move.z + block + key_word(move.w, dim)] =
            cache[move.x + block + key_word(move.y, dim)];
      } else {
        uint from = cache[move.x + block + value_word(move.y, column)];
        uint element = (from >> bits_at(move.y)) & mask;
        uint to = move.z + block + value_word(move.w, column);
        cache[to] = (cache[to] & ~(mask << bits_at(move.w))) | element << bits_at(move.w);
      }
    }
  }
  if (kKind == kInt8 && lane == 0u) {
    for (uint i = 0u; i < n_moves; ++i) {
      uvec4 move = moves[i];
      cache[move.z + block + scale_word(move.w)] = cache[move.x + block + scale_word(move.y)];
    }
  }
}
