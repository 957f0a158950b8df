// SPDX-License-Identifier: Apache-2.0
#include "model/stored_weights.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/float16.h"
#include "io/blocks/block_formats.h"

namespace outrider {
namespace {

// GGUF's quantised blocks of 32 elements: an f16 scale, for q4_1 also an f16 minimum, then the
// elements. Two four-bit elements share a byte: element i is the low half of byte i, element i + 16
// the high half.
constexpr std::int64_t kBlock = 32;
static_assert(kBlock == kernels::kGroup, "stored blocks become groups as they are");

std::uint16_t load_u16(const std::byte* bytes) {
  std::uint16_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

void unpack_four_bits(const std::byte* packed, std::uint8_t* values) {
  for (std::int64_t i = 0; i < kBlock / 2; ++i) {
    values[i] = std::to_integer<std::uint8_t>(packed[i]) & 0x0fu;
    values[i + kBlock / 2] = std::to_integer<std::uint8_t>(packed[i]) >> 4;
  }
}

}  // namespace

bool is_weight_type(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f16 || type == ElementType::bf16 ||
         find_block_format(type) != nullptr;
}

WeightKind native_kind(ElementType type) {
  switch (type) {
    case ElementType::bf16:
      return WeightKind::bf16;
    case ElementType::q8_0:
      return WeightKind::int8;
    case ElementType::q4_0:
    case ElementType::q4_1:
      return WeightKind::int4;
    case ElementType::q5_0:
      return WeightKind::q5_0;
    case ElementType::q5_1:
      return WeightKind::q5_1;
    case ElementType::q2_k:
      return WeightKind::q2_k;
    case ElementType::q3_k:
      return WeightKind::q3_k;
    case ElementType::q4_k:
      return WeightKind::q4_k;
    case ElementType::q5_k:
      return WeightKind::q5_k;
    case ElementType::q6_k:
      return WeightKind::q6_k;
    case ElementType::iq4_nl:
      return WeightKind::iq4_nl;
    case ElementType::iq4_xs:
      return WeightKind::iq4_xs;
    case ElementType::mxfp4:
      return WeightKind::mxfp4;
    default:
      return WeightKind::f32;
  }
}

std::int64_t StoredRows::place(std::int64_t row) const {
  if (interleaved_head_dim > 0) {
    const std::int64_t in_head = row % interleaved_head_dim;
    const std::int64_t half = interleaved_head_dim / 2;
    row += 2 * (in_head % half) + in_head / half - in_head;
  }
  if (run > 0) row = row / run * stride + row % run;
  return first + row;
}

StoredWeights::StoredWeights(const TensorView& tensor, WeightKind kind, const StoredRows& rows)
    : tensor_(tensor), kind_(kind), rows_(rows) {}

const std::byte* StoredWeights::row_bytes(std::int64_t row) const {
  const auto n_blocks = static_cast<std::size_t>(k()) / block_elements(tensor_.type);
  return tensor_.data.data() +
         static_cast<std::size_t>(rows_.place(row)) * n_blocks * block_bytes(tensor_.type);
}

void StoredWeights::read(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const {
  const ElementType stored = tensor_.type;
  if (rows_.turned) {
    read_turned(first_row, n_rows, rows);
  } else if (kind_ == WeightKind::bf16 && stored == ElementType::bf16) {
    read_bf16(first_row, n_rows, rows);
  } else if (kind_ == WeightKind::int8 && stored == ElementType::q8_0) {
    read_int8(first_row, n_rows, rows);
  } else if (kind_ == WeightKind::int4 &&
             (stored == ElementType::q4_0 || stored == ElementType::q4_1)) {
    read_int4(first_row, n_rows, rows);
  } else if (kind_ == native_kind(stored) && find_block_format(stored) != nullptr) {
    read_blocks(first_row, n_rows, rows);
  } else {
    read_decoded(first_row, n_rows, rows);
  }
}

void StoredWeights::read_bf16(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const {
  const auto width = static_cast<std::size_t>(k());
  rows.bf16.resize(static_cast<std::size_t>(n_rows) * width);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    std::memcpy(rows.bf16.data() + static_cast<std::size_t>(i) * width, row_bytes(first_row + i),
                width * sizeof(std::uint16_t));
  }
}

void StoredWeights::read_int8(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const {
  const std::int64_t n_groups = k() / kBlock;
  rows.int8.resize(static_cast<std::size_t>(n_rows * k()));
  rows.scales.resize(static_cast<std::size_t>(n_rows * n_groups));
  std::int8_t* value = rows.int8.data();
  std::uint16_t* scale = rows.scales.data();
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const std::byte* block = row_bytes(first_row + i);
    for (std::int64_t group = 0; group < n_groups; ++group) {
      *scale++ = load_u16(block);
      std::memcpy(value, block + 2, kBlock);
      value += kBlock;
      block += 2 + kBlock;
    }
  }
}

// q4_0 has no minimum: element 8 is zero, w = scale * (q - 8), so the minimum is -8 * scale. That
// is exact in f16, being a change of the exponent (up to a scale of 8188; no weights are that
// large).
void StoredWeights::read_int4(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const {
  const bool has_minimum = tensor_.type == ElementType::q4_1;
  const std::int64_t n_groups = k() / kBlock;
  rows.int4.resize(static_cast<std::size_t>(n_rows * k()));
  rows.scales.resize(static_cast<std::size_t>(n_rows * n_groups));
  rows.minimums.resize(static_cast<std::size_t>(n_rows * n_groups));
  std::uint8_t* values = rows.int4.data();
  std::uint16_t* scale = rows.scales.data();
  std::uint16_t* minimum = rows.minimums.data();
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const std::byte* block = row_bytes(first_row + i);
    for (std::int64_t group = 0; group < n_groups; ++group) {
      *scale = load_u16(block);
      *minimum = has_minimum ? load_u16(block + 2) : to_f16(-8.0F * to_float(F16{*scale})).bits;
      block += has_minimum ? 4 : 2;
      unpack_four_bits(block, values);
      block += kBlock / 2;
      values += kBlock;
      ++scale;
      ++minimum;
    }
  }
}

// Copies codes and scales as stored, block by block.
void StoredWeights::read_blocks(std::int64_t first_row, std::int64_t n_rows,
                                WeightRows& rows) const {
  const BlockFormat& format = *find_block_format(tensor_.type);
  const std::int64_t n_blocks = k() / format.elements;
  const auto all = static_cast<std::size_t>(n_rows * n_blocks);
  const int n_groups = format.has_sub_scales ? format.elements / format.group : 0;
  const bool has_minimums = format.minimum != BlockMinimum::none;
  const auto resize = [&](auto& numbers, bool there, int of_block) {
    numbers.resize(there ? all * static_cast<std::size_t>(of_block) : 0);
  };
  resize(rows.codes, true, format.elements);
  resize(rows.scales, !format.power_of_two_scale, 1);
  resize(rows.f32_scales, format.power_of_two_scale, 1);
  resize(rows.minimums, has_minimums, 1);
  resize(rows.sub_scales, true, n_groups);
  resize(rows.sub_minimums, has_minimums, n_groups);
  std::size_t at = 0;
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const std::byte* block = row_bytes(first_row + i);
    for (std::int64_t j = 0; j < n_blocks; ++j, ++at, block += format.bytes) {
      BlockParts parts;
      format.split(block, parts);
      const auto copy = [&](const auto& from, auto& to, int n) {
        if (to.empty()) return;
        std::copy_n(from.begin(), n, to.begin() + static_cast<std::ptrdiff_t>(at) * n);
      };
      copy(parts.codes, rows.codes, format.elements);
      copy(parts.sub_scales, rows.sub_scales, n_groups);
      copy(parts.sub_minimums, rows.sub_minimums, n_groups);
      if (format.power_of_two_scale) {
        rows.f32_scales[at] = scale_of(format, parts);
      } else {
        rows.scales[at] = parts.scale;
      }
      if (has_minimums) rows.minimums[at] = parts.minimum;
    }
  }
}

void StoredWeights::read_decoded(std::int64_t first_row, std::int64_t n_rows,
                                 WeightRows& rows) const {
  const auto width = static_cast<std::size_t>(k());
  // Float rows are decoded in place, others via a buffer of the caller's thread.
  thread_local std::vector<float> buffer;
  std::vector<float>& decoded = kind_ == WeightKind::f32 ? rows.f32 : buffer;
  decoded.resize(static_cast<std::size_t>(n_rows) * width);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    decode_rows(tensor_, rows_.place(first_row + i), 1,
                {decoded.data() + static_cast<std::size_t>(i) * width, width});
  }
  if (kind_ != WeightKind::f32) quantize_weights(decoded, n_rows, k(), kind_, rows);
}

// A stored row holds one element of each row that is read; a range of rows is contiguous in it.
void StoredWeights::read_turned(std::int64_t first_row, std::int64_t n_rows,
                                WeightRows& rows) const {
  const auto width = static_cast<std::size_t>(k());
  const std::size_t n_bytes = block_bytes(tensor_.type);
  // use(place in (n_rows, k), bytes) for every element.
  const auto for_elements = [&](const auto& use) {
    for (std::size_t i = 0; i < width; ++i) {
      const std::byte* const stored =
          tensor_.data.data() + i * static_cast<std::size_t>(tensor_.shape[1]) * n_bytes;
      for (std::int64_t row = 0; row < n_rows; ++row) {
        const auto column = static_cast<std::size_t>(rows_.place(first_row + row));
        use(static_cast<std::size_t>(row) * width + i, stored + column * n_bytes);
      }
    }
  };
  const std::size_t n = static_cast<std::size_t>(n_rows) * width;
  if (kind_ == WeightKind::bf16 && tensor_.type == ElementType::bf16) {
    rows.bf16.resize(n);
    for_elements([&](std::size_t at, const std::byte* bytes) { rows.bf16[at] = load_u16(bytes); });
    return;
  }
  thread_local std::vector<float> buffer;
  std::vector<float>& decoded = kind_ == WeightKind::f32 ? rows.f32 : buffer;
  decoded.resize(n);
  for_elements([&](std::size_t at, const std::byte* bytes) {
    if (tensor_.type == ElementType::f32) {
      std::memcpy(&decoded[at], bytes, sizeof(float));
    } else if (tensor_.type == ElementType::f16) {
      decoded[at] = to_float(F16{load_u16(bytes)});
    } else {
      decoded[at] = to_float(Bf16{load_u16(bytes)});
    }
  });
  if (kind_ != WeightKind::f32) quantize_weights(decoded, n_rows, k(), kind_, rows);
}

}  // namespace outrider
