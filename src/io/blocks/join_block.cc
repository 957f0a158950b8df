// SPDX-License-Identifier: Apache-2.0
// block_formats.cc documents the layout of blocks, field by field.
#include "io/blocks/join_block.h"

#include <cstdint>
#include <cstring>

namespace outrider {
namespace {

constexpr int kBlock = 32;
constexpr int kSuperBlock = 256;

void store(std::uint16_t number, std::byte* to) { std::memcpy(to, &number, sizeof number); }

// 2 * n codes in n bytes: the low four bits of the first n in the low halves, of the others in the
// high ones.
void join_halves(const std::uint8_t* codes, int n, std::byte* bytes) {
  for (int i = 0; i < n; ++i) {
    bytes[i] = static_cast<std::byte>((codes[i] & 15) | (codes[i + n] & 15) << 4);
  }
}

// Bit 4 of code i as bit i of 32.
void join_bit_4_of_32(const std::uint8_t* codes, std::byte* bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < kBlock; ++i) word |= static_cast<std::uint32_t>(codes[i] >> 4 & 1) << i;
  std::memcpy(bytes, &word, sizeof word);
}

// Bit 4 of code 32 * g + i as bit g of byte i.
void join_bit_4_of_256(const std::uint8_t* codes, std::byte* bytes) {
  for (int i = 0; i < kBlock; ++i) {
    int byte = 0;
    for (int g = 0; g < kSuperBlock / kBlock; ++g) byte |= (codes[kBlock * g + i] >> 4 & 1) << g;
    bytes[i] = static_cast<std::byte>(byte);
  }
}

// Bits 4 and 5 of 128 codes in 32 bytes: those of the first 32 codes lowest.
void join_quarters_above_4(const std::uint8_t* codes, std::byte* bytes) {
  for (int i = 0; i < kBlock; ++i) {
    int byte = 0;
    for (int quarter = 0; quarter < 4; ++quarter) {
      byte |= (codes[kBlock * quarter + i] >> 4 & 3) << 2 * quarter;
    }
    bytes[i] = static_cast<std::byte>(byte);
  }
}

void join_sub_scales(const BlockParts& parts, std::byte* bytes) {
  for (std::size_t i = 0; i < 4; ++i) {
    const int scale = parts.sub_scales[i + 4];
    const int minimum = parts.sub_minimums[i + 4];
    bytes[i] = static_cast<std::byte>(parts.sub_scales[i] | scale >> 4 << 6);
    bytes[4 + i] = static_cast<std::byte>(parts.sub_minimums[i] | minimum >> 4 << 6);
    bytes[8 + i] = static_cast<std::byte>((scale & 15) | (minimum & 15) << 4);
  }
}

// The low four bits of 256 codes, those of two groups of 32 in 32 bytes.
void join_pairs(const BlockParts& parts, std::byte* bytes) {
  for (int pair = 0; pair < 4; ++pair) {
    join_halves(parts.codes.data() + 64 * pair, 32, bytes + 32 * pair);
  }
}

}  // namespace

void join_q8_0(const BlockParts& parts, std::byte* block) {
  store(parts.scale, block);
  std::memcpy(block + 2, parts.codes.data(), kBlock);
}

void join_q4_0(const BlockParts& parts, std::byte* block) {
  store(parts.scale, block);
  join_halves(parts.codes.data(), 16, block + 2);
}

void join_q5_0(const BlockParts& parts, std::byte* block) {
  store(parts.scale, block);
  join_bit_4_of_32(parts.codes.data(), block + 2);
  join_halves(parts.codes.data(), 16, block + 6);
}

void join_q5_1(const BlockParts& parts, std::byte* block) {
  store(parts.scale, block);
  store(parts.minimum, block + 2);
  join_bit_4_of_32(parts.codes.data(), block + 4);
  join_halves(parts.codes.data(), 16, block + 8);
}

void join_q4_k(const BlockParts& parts, std::byte* block) {
  store(parts.scale, block);
  store(parts.minimum, block + 2);
  join_sub_scales(parts, block + 4);
  join_pairs(parts, block + 16);
}

void join_q5_k(const BlockParts& parts, std::byte* block) {
  store(parts.scale, block);
  store(parts.minimum, block + 2);
  join_sub_scales(parts, block + 4);
  join_bit_4_of_256(parts.codes.data(), block + 16);
  join_pairs(parts, block + 48);
}

void join_q6_k(const BlockParts& parts, std::byte* block) {
  for (int half = 0; half < 2; ++half) {
    join_halves(parts.codes.data() + 128 * half, 64, block + 64 * half);
    join_quarters_above_4(parts.codes.data() + 128 * half, block + 128 + 32 * half);
  }
  std::memcpy(block + 192, parts.sub_scales.data(), 16);
  store(parts.scale, block + 208);
}

}  // namespace outrider
