// SPDX-License-Identifier: Apache-2.0
#include "io/tensor_source.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/float16.h"
#include "io/blocks/block_formats.h"
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
    case ElementType::foreign:
      return {"foreign", 1, 0};
    default:
      break;
  }
  if (const BlockFormat* format = find_block_format(type)) {
    return {format->name, static_cast<std::size_t>(format->elements), format->bytes};
  }
  throw Error("element type", std::to_string(static_cast<int>(type)), "is none of the known types");
}

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
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

std::string TensorView::type_name() const {
  return type == ElementType::foreign ? foreign_type : std::string(name_of(type));
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

  // Rows are contiguous without padding, so a range of rows is a range of blocks.
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
    default:
      if (const BlockFormat* format = find_block_format(tensor.type)) {
        return decode_all(
            [&](const std::byte* from, float* to) { decode_block(*format, from, to); });
      }
      throw Error(kOperation, tensor.name, "a float type", traits.name);
  }
}

}  // namespace outrider
