// SPDX-License-Identifier: Apache-2.0
#include "io/blocks/block_formats.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/float16.h"

namespace outrider {
namespace {

constexpr int kBlock = 32;
constexpr int kSuperBlock = 256;

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

int byte_at(const std::byte* from, int i) { return std::to_integer<int>(from[i]); }

// n bits of a byte, from bit `first` on.
int bits_of(int byte, int first, int n) { return (byte >> first) & ((1 << n) - 1); }

// --- Codes --------------------------------------------------------------------------------------

// 2 * n codes of four bits in n bytes: the low halves, then the high halves.
void split_halves(const std::byte* bytes, int n, std::uint8_t* codes) {
  for (int i = 0; i < n; ++i) {
    codes[i] = static_cast<std::uint8_t>(bits_of(byte_at(bytes, i), 0, 4));
    codes[i + n] = static_cast<std::uint8_t>(bits_of(byte_at(bytes, i), 4, 4));
  }
}

// 4 * 32 codes of two bits in 32 bytes: bits 0 and 1 of all bytes, then bits 2 and 3, and so on.
void split_quarters(const std::byte* bytes, std::uint8_t* codes) {
  for (int quarter = 0; quarter < 4; ++quarter) {
    for (int i = 0; i < kBlock; ++i) {
      codes[kBlock * quarter + i] =
          static_cast<std::uint8_t>(bits_of(byte_at(bytes, i), 2 * quarter, 2));
    }
  }
}

// Bit i of the 32-bit word at `bytes` is bit 4 of code i.
void add_bit_4_of_32(const std::byte* bytes, std::uint8_t* codes) {
  const auto word = load<std::uint32_t>(bytes);
  for (int i = 0; i < kBlock; ++i) {
    codes[i] = static_cast<std::uint8_t>(codes[i] | ((word >> i) & 1U) << 4);
  }
}

// Bit g of byte i is bit `place` of code 32 * g + i, of eight groups.
void add_bit_of_256(const std::byte* bytes, int place, std::uint8_t* codes) {
  for (int i = 0; i < kSuperBlock; ++i) {
    const int bit = bits_of(byte_at(bytes, i % kBlock), i / kBlock, 1);
    codes[i] = static_cast<std::uint8_t>(codes[i] | bit << place);
  }
}

// --- Blocks of 32, field by field ---------------------------------------------------------------

// f16 scale; 32 signed bytes.
void split_q8_0(const std::byte* block, BlockParts& parts) {
  parts.scale = load<std::uint16_t>(block);
  std::memcpy(parts.codes.data(), block + 2, kBlock);
}

// f16 scale; 16 bytes of codes.
void split_q4_0(const std::byte* block, BlockParts& parts) {
  parts.scale = load<std::uint16_t>(block);
  split_halves(block + 2, 16, parts.codes.data());
}

// f16 scale; f16 minimum; 16 bytes of codes.
void split_q4_1(const std::byte* block, BlockParts& parts) {
  parts.scale = load<std::uint16_t>(block);
  parts.minimum = load<std::uint16_t>(block + 2);
  split_halves(block + 4, 16, parts.codes.data());
}

// f16 scale; 32 fifth bits; 16 bytes of the lower four.
void split_q5_0(const std::byte* block, BlockParts& parts) {
  parts.scale = load<std::uint16_t>(block);
  split_halves(block + 6, 16, parts.codes.data());
  add_bit_4_of_32(block + 2, parts.codes.data());
}

// f16 scale; f16 minimum; 32 fifth bits; 16 bytes of the lower four.
void split_q5_1(const std::byte* block, BlockParts& parts) {
  parts.scale = load<std::uint16_t>(block);
  parts.minimum = load<std::uint16_t>(block + 2);
  split_halves(block + 8, 16, parts.codes.data());
  add_bit_4_of_32(block + 4, parts.codes.data());
}

// Exponent (one byte); 16 bytes of codes.
void split_mxfp4(const std::byte* block, BlockParts& parts) {
  parts.scale = load<std::uint8_t>(block);
  split_halves(block + 1, 16, parts.codes.data());
}

// --- Blocks of 256, field by field --------------------------------------------------------------

// 16 bytes, each a sub-scale (low half) and a sub-minimum (high half) of 16 elements; 64 bytes of
// codes of two bits; f16 scale; f16 minimum.
void split_q2_k(const std::byte* block, BlockParts& parts) {
  for (int i = 0; i < 16; ++i) {
    const auto at = static_cast<std::size_t>(i);
    parts.sub_scales[at] = static_cast<std::int8_t>(bits_of(byte_at(block, i), 0, 4));
    parts.sub_minimums[at] = static_cast<std::uint8_t>(bits_of(byte_at(block, i), 4, 4));
  }
  split_quarters(block + 16, parts.codes.data());
  split_quarters(block + 48, parts.codes.data() + 128);
  parts.scale = load<std::uint16_t>(block + 80);
  parts.minimum = load<std::uint16_t>(block + 82);
}

// 256 third bits in 32 bytes; 64 bytes of the lower two; 16 sub-scales of six bits less 32, in 12
// bytes (the low four bits of i and i + 8 in byte i, the high two of i, i + 4, i + 8, i + 12 in
// byte 8 + i); f16 scale.
void split_q3_k(const std::byte* block, BlockParts& parts) {
  split_quarters(block + 32, parts.codes.data());
  split_quarters(block + 64, parts.codes.data() + 128);
  add_bit_of_256(block, 2, parts.codes.data());
  const std::byte* scales = block + 96;
  for (int i = 0; i < 16; ++i) {
    const int low = bits_of(byte_at(scales, i % 8), i / 8 * 4, 4);
    const int high = bits_of(byte_at(scales, 8 + i % 4), i / 4 * 2, 2);
    parts.sub_scales[static_cast<std::size_t>(i)] =
        static_cast<std::int8_t>((low | high << 4) - 32);
  }
  parts.scale = load<std::uint16_t>(block + 108);
}

// Eight sub-scales and eight sub-minimums of six bits in 12 bytes: those of groups 0 to 3 are the
// low six bits of bytes 0 to 3 and 4 to 7; those of groups 4 to 7 have their low four bits in the
// low and high halves of bytes 8 to 11, and their high two on top of those of groups 0 to 3.
void split_sub_scales(const std::byte* bytes, BlockParts& parts) {
  for (int i = 0; i < 4; ++i) {
    const int scale = byte_at(bytes, i);
    const int minimum = byte_at(bytes, 4 + i);
    const int rest = byte_at(bytes, 8 + i);
    const auto at = static_cast<std::size_t>(i);
    parts.sub_scales[at] = static_cast<std::int8_t>(scale & 63);
    parts.sub_minimums[at] = static_cast<std::uint8_t>(minimum & 63);
    parts.sub_scales[at + 4] = static_cast<std::int8_t>((rest & 15) | scale >> 6 << 4);
    parts.sub_minimums[at + 4] = static_cast<std::uint8_t>(rest >> 4 | minimum >> 6 << 4);
  }
}

// f16 scale; f16 minimum; 12 bytes of sub-scales; 128 bytes of codes, those of two groups in 32.
void split_q4_k(const std::byte* block, BlockParts& parts) {
  parts.scale = load<std::uint16_t>(block);
  parts.minimum = load<std::uint16_t>(block + 2);
  split_sub_scales(block + 4, parts);
  for (int pair = 0; pair < 4; ++pair) {
    split_halves(block + 16 + 32 * pair, 32, parts.codes.data() + 64 * pair);
  }
}

// As q4_k, with 256 fifth bits in 32 bytes before the codes.
void split_q5_k(const std::byte* block, BlockParts& parts) {
  parts.scale = load<std::uint16_t>(block);
  parts.minimum = load<std::uint16_t>(block + 2);
  split_sub_scales(block + 4, parts);
  for (int pair = 0; pair < 4; ++pair) {
    split_halves(block + 48 + 32 * pair, 32, parts.codes.data() + 64 * pair);
  }
  add_bit_of_256(block + 16, 4, parts.codes.data());
}

// 128 bytes of lower four bits, 64 of them to 128 elements; 64 bytes of upper two; 16 signed
// sub-scales; f16 scale.
void split_q6_k(const std::byte* block, BlockParts& parts) {
  std::array<std::uint8_t, kSuperBlock> high;
  for (int half = 0; half < 2; ++half) {
    split_halves(block + 64 * half, 64, parts.codes.data() + 128 * half);
    split_quarters(block + 128 + 32 * half, high.data() + 128 * half);
  }
  for (std::size_t i = 0; i < high.size(); ++i) {
    parts.codes[i] = static_cast<std::uint8_t>(parts.codes[i] | high[i] << 4);
  }
  std::memcpy(parts.sub_scales.data(), block + 192, 16);
  parts.scale = load<std::uint16_t>(block + 208);
}

// f16 scale; eight sub-scales of six bits less 32: the upper two bits of all in 16 bits, the lower
// four in four bytes; 128 bytes of codes, those of a group in 16.
void split_iq4_xs(const std::byte* block, BlockParts& parts) {
  parts.scale = load<std::uint16_t>(block);
  const int high = load<std::uint16_t>(block + 2);
  for (int i = 0; i < 8; ++i) {
    const int low = bits_of(byte_at(block + 4, i / 2), i % 2 * 4, 4);
    parts.sub_scales[static_cast<std::size_t>(i)] =
        static_cast<std::int8_t>((low | bits_of(high, 2 * i, 2) << 4) - 32);
    split_halves(block + 8 + 16 * i, 16, parts.codes.data() + 32 * i);
  }
}

// --- Values of codes -----------------------------------------------------------------------------

// code - offset; for signed bytes (offset 0), the byte's own sign.
constexpr std::array<std::int8_t, 256> counted_from(int offset) {
  std::array<std::int8_t, 256> values{};
  for (int code = 0; code < 256; ++code) {
    values[static_cast<std::size_t>(code)] = static_cast<std::int8_t>(code - offset);
  }
  return values;
}

constexpr std::array<std::int8_t, 256> out_of(const std::array<int, 16>& table) {
  std::array<std::int8_t, 256> values{};
  for (std::size_t code = 0; code < table.size(); ++code) {
    values[code] = static_cast<std::int8_t>(table[code]);
  }
  return values;
}

// The sixteen values of iq4_nl and iq4_xs.
constexpr std::array kNonLinear = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};
// Twice the sixteen four-bit floats: a sign, two exponent bits, one mantissa bit.
constexpr std::array kTwiceFloats = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

constexpr auto kNone = BlockMinimum::none;
constexpr auto kAdded = BlockMinimum::added;
constexpr auto kSubtracted = BlockMinimum::subtracted;

constexpr std::array kFormats = {
    BlockFormat{ElementType::q8_0, "q8_0", 32, 34, 32, false, kNone, split_q8_0, counted_from(0)},
    BlockFormat{ElementType::q4_0, "q4_0", 32, 18, 32, false, kNone, split_q4_0, counted_from(8)},
    BlockFormat{ElementType::q4_1, "q4_1", 32, 20, 32, false, kAdded, split_q4_1, counted_from(0)},
    BlockFormat{ElementType::q5_0, "q5_0", 32, 22, 32, false, kNone, split_q5_0, counted_from(16)},
    BlockFormat{ElementType::q5_1, "q5_1", 32, 24, 32, false, kAdded, split_q5_1, counted_from(0)},
    BlockFormat{ElementType::q2_k, "q2_k", 256, 84, 16, true, kSubtracted, split_q2_k,
                counted_from(0)},
    BlockFormat{ElementType::q3_k, "q3_k", 256, 110, 16, true, kNone, split_q3_k, counted_from(4)},
    BlockFormat{ElementType::q4_k, "q4_k", 256, 144, 32, true, kSubtracted, split_q4_k,
                counted_from(0)},
    BlockFormat{ElementType::q5_k, "q5_k", 256, 176, 32, true, kSubtracted, split_q5_k,
                counted_from(0)},
    BlockFormat{ElementType::q6_k, "q6_k", 256, 210, 16, true, kNone, split_q6_k, counted_from(32)},
    BlockFormat{ElementType::iq4_nl, "iq4_nl", 32, 18, 32, false, kNone, split_q4_0,
                out_of(kNonLinear)},
    BlockFormat{ElementType::iq4_xs, "iq4_xs", 256, 136, 32, true, kNone, split_iq4_xs,
                out_of(kNonLinear)},
    BlockFormat{ElementType::mxfp4, "mxfp4", 32, 17, 32, false, kNone, split_mxfp4,
                out_of(kTwiceFloats), true},
};

// 2^(exponent - 128): half of the exponent's value, since codes stand for twice their values.
float half_power_of_two(std::uint32_t exponent) {
  const std::uint32_t bits = exponent < 2 ? 0x00200000U << exponent : (exponent - 1) << 23;
  return std::bit_cast<float>(bits);
}

}  // namespace

const BlockFormat* find_block_format(ElementType type) {
  const auto* found = std::find_if(kFormats.begin(), kFormats.end(),
                                   [&](const BlockFormat& format) { return format.type == type; });
  return found == kFormats.end() ? nullptr : found;
}

float scale_of(const BlockFormat& format, const BlockParts& parts) {
  return format.power_of_two_scale ? half_power_of_two(parts.scale) : to_float(F16{parts.scale});
}

void decode_block(const BlockFormat& format, const std::byte* block, float* out) {
  BlockParts parts;
  format.split(block, parts);
  const float scale = scale_of(format, parts);
  const float minimum = format.minimum == BlockMinimum::none ? 0.0F : to_float(F16{parts.minimum});
  for (int first = 0; first < format.elements; first += format.group) {
    const auto group = static_cast<std::size_t>(first / format.group);
    const float step =
        format.has_sub_scales ? scale * static_cast<float>(parts.sub_scales[group]) : scale;
    const auto value_of = [&](int i) {
      return step * static_cast<float>(format.values[parts.codes[static_cast<std::size_t>(i)]]);
    };
    const int end = first + format.group;
    switch (format.minimum) {
      case BlockMinimum::none:
        for (int i = first; i < end; ++i) out[i] = value_of(i);
        break;
      case BlockMinimum::added:
        for (int i = first; i < end; ++i) out[i] = value_of(i) + minimum;
        break;
      case BlockMinimum::subtracted: {
        const float sub_minimum = minimum * static_cast<float>(parts.sub_minimums[group]);
        for (int i = first; i < end; ++i) out[i] = value_of(i) - sub_minimum;
        break;
      }
    }
  }
}

}  // namespace outrider
