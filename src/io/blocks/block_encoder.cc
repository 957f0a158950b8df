// SPDX-License-Identifier: Apache-2.0
#include "io/blocks/block_encoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/float16.h"
#include "io/blocks/block_formats.h"
#include "io/blocks/join_block.h"
#include "io/blocks/super_block_fit.h"

namespace outrider {
namespace {

constexpr std::size_t kBlock = 32;
constexpr float kLargestF16 = 65504;

// 0 for 0, since a block of zeros has no reciprocal scale; also if the reciprocal would be
// infinite.
float reciprocal_of(float scale) {
  const float reciprocal = 1.0F / scale;
  return scale != 0 && std::isfinite(reciprocal) ? reciprocal : 0.0F;
}

// The first element with the largest magnitude.
float extreme_of(const float* values) {
  return *std::max_element(values, values + kBlock, [](float left, float right) {
    return std::fabs(left) < std::fabs(right);
  });
}

// Ties away from zero. In double precision adding one half is exact.
std::int8_t rounded(float value) {
  const double exact = value;
  return static_cast<std::int8_t>(exact + std::copysign(0.5, exact));
}

// A code from 0 on. value: to be truncated; it includes the half for rounding.
std::uint8_t cut(float value, int top_code) {
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(value), 0, top_code));
}

void encode_q8_0(const float* values, std::byte* block) {
  BlockParts parts;
  const float scale = std::fabs(extreme_of(values)) / 127.0F;
  const float reciprocal = reciprocal_of(scale);
  parts.scale = to_f16(scale).bits;
  for (std::size_t i = 0; i < kBlock; ++i) {
    parts.codes[i] = static_cast<std::uint8_t>(rounded(values[i] * reciprocal));
  }
  join_q8_0(parts, block);
}

// Codes are offset by -half.
void fit_to_extreme(const float* values, int half, BlockParts& parts) {
  const float scale = extreme_of(values) / static_cast<float>(-half);
  const float reciprocal = reciprocal_of(scale);
  const float offset = static_cast<float>(half) + 0.5F;
  parts.scale = to_f16(scale).bits;
  for (std::size_t i = 0; i < kBlock; ++i) {
    parts.codes[i] = cut(values[i] * reciprocal + offset, 2 * half - 1);
  }
}

void encode_q4_0(const float* values, std::byte* block) {
  BlockParts parts;
  fit_to_extreme(values, 8, parts);
  join_q4_0(parts, block);
}

void encode_q5_0(const float* values, std::byte* block) {
  BlockParts parts;
  fit_to_extreme(values, 16, parts);
  join_q5_0(parts, block);
}

void encode_q5_1(const float* values, std::byte* block) {
  constexpr int kTopCode = 31;
  BlockParts parts;
  const auto [least, most] = std::minmax_element(values, values + kBlock);
  const float minimum = *least;
  const float scale = (*most - minimum) / static_cast<float>(kTopCode);
  const float reciprocal = reciprocal_of(scale);
  parts.scale = to_f16(scale).bits;
  parts.minimum = to_f16(minimum).bits;
  for (std::size_t i = 0; i < kBlock; ++i) {
    parts.codes[i] = cut((values[i] - minimum) * reciprocal + 0.5F, kTopCode);
  }
  join_q5_1(parts, block);
}

void encode_q4_k(const float* values, std::byte* block) {
  BlockParts parts;
  fit_with_minimums(values, 15, parts);
  join_q4_k(parts, block);
}

void encode_q5_k(const float* values, std::byte* block) {
  BlockParts parts;
  fit_with_minimums(values, 31, parts);
  join_q5_k(parts, block);
}

void encode_q6_k(const float* values, std::byte* block) {
  BlockParts parts;
  fit_signed(values, parts);
  join_q6_k(parts, block);
}

void encode_f16(const float* value, std::byte* to) {
  const F16 half = to_f16(*value);
  std::memcpy(to, &half.bits, sizeof half.bits);
}

struct Encoder {
  ElementType type;
  float largest_code;
  void (*encode)(const float* values, std::byte* block);
};
constexpr std::array kEncoders = {
    Encoder{ElementType::f16, 1, encode_f16},    Encoder{ElementType::q8_0, 127, encode_q8_0},
    Encoder{ElementType::q4_0, 8, encode_q4_0},  Encoder{ElementType::q5_0, 16, encode_q5_0},
    Encoder{ElementType::q5_1, 1, encode_q5_1},  Encoder{ElementType::q4_k, 15, encode_q4_k},
    Encoder{ElementType::q5_k, 31, encode_q5_k}, Encoder{ElementType::q6_k, 32, encode_q6_k},
};

const Encoder* find_encoder(ElementType type) {
  const auto* found = std::find_if(kEncoders.begin(), kEncoders.end(),
                                   [&](const Encoder& encoder) { return encoder.type == type; });
  return found == kEncoders.end() ? nullptr : found;
}

}  // namespace

bool can_encode(ElementType type) { return find_encoder(type) != nullptr; }

float largest_encodable(ElementType type) { return kLargestF16 * find_encoder(type)->largest_code; }

std::size_t first_unencodable(ElementType type, std::span<const float> values) {
  const float largest = largest_encodable(type);
  // Written so that NaN is found.
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](float value) { return !(std::fabs(value) <= largest); });
  return static_cast<std::size_t>(found - values.begin());
}

void encode_blocks(ElementType type, std::span<const float> values, std::span<std::byte> out) {
  const Encoder& encoder = *find_encoder(type);
  const std::size_t n_elements = block_elements(type);
  const std::size_t n_bytes = block_bytes(type);
  const std::size_t n_blocks = values.size() / n_elements;
  for (std::size_t i = 0; i < n_blocks; ++i) {
    encoder.encode(values.data() + i * n_elements, out.data() + i * n_bytes);
  }
}

}  // namespace outrider
