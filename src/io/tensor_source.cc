#include "io/tensor_source.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/float16.h"
#include "outrider/error.h"

namespace outrider {
namespace {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian and are read in place");

constexpr const char* kOperation = "decode rows";

struct TypeTraits {
  std::string_view name;
  std::size_t block_elements;
  std::size_t block_bytes;
};

// Elements in a GGUF block: 32 for the plain kinds, 256 for the "k" kinds.
constexpr int kBlock = 32;
constexpr int kSuperBlock = 256;
constexpr int kHalf = kBlock / 2;  // bytes of a block's 4-bit codes

// Bytes of a block, field by field in file order (all f16 scales are two bytes).
constexpr std::size_t kQ8Bytes = 2 + kBlock;             // scale, 32 signed codes
constexpr std::size_t kQ40Bytes = 2 + kHalf;             // scale, 32 codes of 4 bits
constexpr std::size_t kQ41Bytes = 2 + 2 + kHalf;         // scale, minimum, 32 codes of 4 bits
constexpr std::size_t kQ6LowBytes = kSuperBlock / 2;     // lower 4 bits of 256 codes
constexpr std::size_t kQ6HighBytes = kSuperBlock / 4;    // upper 2 bits of 256 codes
constexpr std::size_t kQ6ScaleBytes = kSuperBlock / 16;  // a signed scale for every 16 elements
constexpr std::size_t kQ6Bytes = kQ6LowBytes + kQ6HighBytes + kQ6ScaleBytes + 2;  // and the scale

TypeTraits traits_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return {"f32", 1, 4};
    case ElementType::f16:
      return {"f16", 1, 2};
    case ElementType::bf16:
      return {"bf16", 1, 2};
    case ElementType::f64:
      return {"f64", 1, 8};
    case ElementType::i8:
      return {"i8", 1, 1};
    case ElementType::i16:
      return {"i16", 1, 2};
    case ElementType::i32:
      return {"i32", 1, 4};
    case ElementType::i64:
      return {"i64", 1, 8};
    case ElementType::u8:
      return {"u8", 1, 1};
    case ElementType::boolean:
      return {"boolean", 1, 1};
    case ElementType::q8_0:
      return {"q8_0", kBlock, kQ8Bytes};
    case ElementType::q4_0:
      return {"q4_0", kBlock, kQ40Bytes};
    case ElementType::q4_1:
      return {"q4_1", kBlock, kQ41Bytes};
    case ElementType::q6_k:
      return {"q6_k", kSuperBlock, kQ6Bytes};
  }
  throw Error("element type", std::to_string(static_cast<int>(type)), "is none of the known types");
}

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// The products below round once: a scale has 11 significant bits, a code at most 8 (q6_k: 6, times
// a signed 8-bit scale), so every order of multiplication gives the same float.

// codes: (32) signed bytes. out: (32).
void decode_q8_0(const std::byte* block, float* out) {
  const float scale = to_float(load<F16>(block));
  for (int i = 0; i < kBlock; ++i) {
    out[i] = scale * static_cast<float>(load<std::int8_t>(block + 2 + i));
  }
}

// The low halves of the 16 code bytes are elements 0..15, the high halves 16..31; code 8 is zero.
void decode_q4_0(const std::byte* block, float* out) {
  const float scale = to_float(load<F16>(block));
  for (int i = 0; i < kHalf; ++i) {
    const int codes = std::to_integer<int>(block[2 + i]);
    out[i] = scale * static_cast<float>((codes & 15) - 8);
    out[i + kHalf] = scale * static_cast<float>((codes >> 4) - 8);
  }
}

// As q4_0, but code 0 is the block's minimum.
void decode_q4_1(const std::byte* block, float* out) {
  const float scale = to_float(load<F16>(block));
  const float minimum = to_float(load<F16>(block + 2));
  for (int i = 0; i < kHalf; ++i) {
    const int codes = std::to_integer<int>(block[4 + i]);
    out[i] = scale * static_cast<float>(codes & 15) + minimum;
    out[i + kHalf] = scale * static_cast<float>(codes >> 4) + minimum;
  }
}

// Two halves of 128 elements, each four quarters of 32. Quarters 0 and 1 take the low halves of the
// 64 low-bit bytes, quarters 2 and 3 the high halves of the same; quarter k's upper two bits are
// bits 2k and 2k+1 of the 32 high-bit bytes. Code 32 is zero; 16 elements share a signed scale.
void decode_q6_k(const std::byte* block, float* out) {
  const std::byte* low = block;
  const std::byte* high = low + kQ6LowBytes;
  const std::byte* scales = high + kQ6HighBytes;
  const float scale = to_float(load<F16>(scales + kQ6ScaleBytes));
  for (int half = 0; half < 2; ++half) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      const std::byte* low_part = low + 64 * half + 32 * (quarter % 2);
      const std::byte* high_part = high + 32 * half;
      const int low_shift = quarter < 2 ? 0 : 4;
      for (int lane = 0; lane < 32; ++lane) {
        const int low_bits = (std::to_integer<int>(low_part[lane]) >> low_shift) & 15;
        const int high_bits = (std::to_integer<int>(high_part[lane]) >> (2 * quarter)) & 3;
        const float group_scale = static_cast<float>(load<std::int8_t>(scales + lane / 16));
        *out++ = scale * group_scale * static_cast<float>((low_bits | (high_bits << 4)) - 32);
      }
      scales += 2;
    }
  }
}

}  // namespace

std::string_view name_of(ElementType type) { return traits_of(type).name; }
std::size_t block_elements(ElementType type) { return traits_of(type).block_elements; }
std::size_t block_bytes(ElementType type) { return traits_of(type).block_bytes; }

std::int64_t TensorView::n_elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

void decode_rows(const TensorView& tensor, std::int64_t first_row, std::int64_t n_rows,
                 std::span<float> out) {
  const TypeTraits traits = traits_of(tensor.type);
  const std::int64_t row_elements = tensor.shape.empty() ? 1 : tensor.shape.back();
  std::int64_t total_rows = 1;  // a scalar is one row of one element
  for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) total_rows *= tensor.shape[i];

  if (first_row < 0 || n_rows < 0 || first_row > total_rows || n_rows > total_rows - first_row) {
    throw Error(kOperation, tensor.name, fmt::format("rows within 0..{}", total_rows),
                fmt::format("{} rows from {}", n_rows, first_row));
  }
  const auto n_out = static_cast<std::size_t>(n_rows * row_elements);
  if (out.size() != n_out) {
    throw Error(kOperation, tensor.name, fmt::format("room for {} floats", n_out),
                fmt::format("{}", out.size()));
  }
  const std::size_t row_blocks = static_cast<std::size_t>(row_elements) / traits.block_elements;
  const std::size_t row_bytes = row_blocks * traits.block_bytes;
  if (row_blocks * traits.block_elements != static_cast<std::size_t>(row_elements) ||
      tensor.data.size() != static_cast<std::size_t>(total_rows) * row_bytes) {
    throw Error(kOperation, tensor.name, "data that fills its shape",
                fmt::format("{} bytes of {} for {} rows of {}", tensor.data.size(), traits.name,
                            total_rows, row_elements));
  }

  // Rows lie one after the other without padding, so a range of rows is a range of blocks.
  const std::byte* block = tensor.data.data() + static_cast<std::size_t>(first_row) * row_bytes;
  const auto decode_all = [&](auto decode_block) {
    for (std::size_t i = 0; i < out.size(); i += traits.block_elements) {
      decode_block(block, out.data() + i);
      block += traits.block_bytes;
    }
  };
  switch (tensor.type) {
    case ElementType::f32:
      if (!out.empty()) std::memcpy(out.data(), block, out.size_bytes());
      return;
    case ElementType::f16:
      return decode_all([](const std::byte* from, float* to) { *to = to_float(load<F16>(from)); });
    case ElementType::bf16:
      return decode_all([](const std::byte* from, float* to) { *to = to_float(load<Bf16>(from)); });
    case ElementType::q8_0:
      return decode_all(decode_q8_0);
    case ElementType::q4_0:
      return decode_all(decode_q4_0);
    case ElementType::q4_1:
      return decode_all(decode_q4_1);
    case ElementType::q6_k:
      return decode_all(decode_q6_k);
    default:
      throw Error(kOperation, tensor.name, "a float type", traits.name);
  }
}

}  // namespace outrider
