// SPDX-License-Identifier: Apache-2.0
// The place of a token's keys and values in a page (kernels/attention/kv_layout.h), in words and bits.

layout(constant_id = 0) const uint kKind = 0u;  // KvKind
layout(push_constant) uniform Numbers {
  uint n_kv_heads;
  uint head_dim;
  uint max_rows;
  uint block_words;  // of one head's keys, or values, in a page
  uint first_head;   // within the heads of a row
  uint heads_of_row;
};

const uint kBf16 = 1u;
const uint kInt8 = 2u;
const uint kChunk = 64u;

uint cell_elements() { return kKind == kInt8 ? 4u : (kKind == kBf16 ? 2u : 1u); }
uint element_bits() { return 32u / cell_elements(); }

// The bit position of an element at that index of a run: cells of four have the order 0, 2, 1, 3.
uint bits_at(uint i) {
  uint place = i % cell_elements();
  if (kKind == kInt8 && (place == 1u || place == 2u)) place = 3u - place;
  return place * element_bits();
}

uint value_row_words() { return (head_dim + 15u) / 16u * 16u; }

// In words from the beginning of a block.
uint key_word(uint token, uint dim) { return dim / cell_elements() * kChunk + token; }
uint value_word(uint token, uint dim) {
  return token / cell_elements() * value_row_words() + dim;
}
uint scale_word(uint token) { return kChunk / cell_elements() * value_row_words() + token; }
