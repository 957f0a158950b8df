// SPDX-License-Identifier: Apache-2.0
#include "model/quantised/quantised_matrix.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/float16.h"

namespace outrider {
namespace {

using Form = Quantisation::Form;

// The places of eight rows' codes in AWQ's words.
constexpr std::array<int, 8> kAwqPlaces = {0, 4, 1, 5, 2, 6, 3, 7};

std::uint32_t word_at(const TensorView& view, std::int64_t at) {
  std::uint32_t word;
  std::memcpy(&word, view.data.data() + static_cast<std::size_t>(at) * sizeof word, sizeof word);
  return word;
}

int code_in(std::uint32_t word, std::int64_t place) {
  return static_cast<int>(word >> (4 * place) & 15);
}

float float_at(const TensorView& view, std::int64_t at) {
  if (view.type == ElementType::f32) {
    float value;
    std::memcpy(&value, view.data.data() + static_cast<std::size_t>(at) * sizeof value,
                sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, view.data.data() + static_cast<std::size_t>(at) * sizeof bits, sizeof bits);
  return view.type == ElementType::f16 ? to_float(F16{bits}) : to_float(Bf16{bits});
}

std::array<float, 256> e4m3_values() {
  std::array<float, 256> values{};
  for (int bits = 0; bits < 256; ++bits) {
    const int exponent = bits >> 3 & 15;
    const int fraction = bits & 7;
    float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
    if ((bits & 127) == 127) value = std::numeric_limits<float>::quiet_NaN();
    values[static_cast<std::size_t>(bits)] = bits < 128 ? value : -value;
  }
  return values;
}

}  // namespace

float from_e4m3(std::uint8_t bits) {
  static const std::array<float, 256> values = e4m3_values();
  return values[bits];
}

WeightKind native_kind(const QuantisedTensors& tensors) {
  const Quantisation& quantisation = tensors.quantisation;
  if (quantisation.form == Form::fp8 || quantisation.form == Form::fp8_inverse) {
    return WeightKind::bf16;
  }
  // A group of the kernels has one scale.
  if (tensors.k % kernels::kGroup != 0) return WeightKind::f32;
  for (std::size_t i = 0; i < tensors.groups.size(); ++i) {
    if (tensors.groups[i] != tensors.groups[i - i % kernels::kGroup]) return WeightKind::f32;
  }
  for (std::int64_t i = 0; i < tensors.scales->n_elements(); ++i) {
    const float scale = float_at(*tensors.scales, i);
    if (to_float(to_f16(scale)) != scale) return WeightKind::f32;
  }
  return WeightKind::int8;
}

QuantisedMatrix::QuantisedMatrix(QuantisedTensors tensors, WeightKind kind, const StoredRows& rows)
    : tensors_(std::move(tensors)),
      kind_(kind),
      rows_(rows),
      keeps_codes_(kind == WeightKind::int8 && native_kind(tensors_) == WeightKind::int8) {}

std::int64_t QuantisedMatrix::group_of(std::int64_t input) const {
  if (!tensors_.groups.empty()) return tensors_.groups[static_cast<std::size_t>(input)];
  return tensors_.quantisation.group > 0 ? input / tensors_.quantisation.group : 0;
}

float QuantisedMatrix::scale(std::int64_t row, std::int64_t group) const {
  const TensorView& scales = *tensors_.scales;
  switch (tensors_.quantisation.form) {
    case Form::gptq:
    case Form::awq:
      return float_at(scales, group * tensors_.n_rows + row);
    case Form::packed:
      return float_at(scales, row * scales.shape[1] + group);
    default:
      return float_at(scales, scales.n_elements() == 1 ? 0 : row);
  }
}

void QuantisedMatrix::read_codes(std::span<const std::int64_t> rows,
                                 std::span<std::int8_t> codes) const {
  const Form form = tensors_.quantisation.form;
  const TensorView& stored = *tensors_.codes;
  const std::int64_t k = tensors_.k;
  const std::int64_t n_words = tensors_.n_rows / kPerWord;  // for a row of AWQ's codes and of zeros
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::int64_t row = rows[r];
    std::int8_t* const out = codes.data() + r * static_cast<std::size_t>(k);
    const auto place = kAwqPlaces[static_cast<std::size_t>(row % kPerWord)];
    std::int64_t last_group = -1;
    int zero = form == Form::int8 ? 0 : 8;
    for (std::int64_t i = 0; i < k; ++i) {
      if (tensors_.zeros != nullptr && group_of(i) != last_group) {
        last_group = group_of(i);
        switch (form) {
          case Form::gptq:
            // The first version subtracts one from a word's codes together, so that a zero of 0
            // borrows from the next.
            zero = code_in(word_at(*tensors_.zeros, last_group * n_words + row / kPerWord) +
                               (tensors_.quantisation.zeros_less_one ? 0x11111111U : 0U),
                           row % kPerWord);
            break;
          case Form::awq:
            zero = code_in(word_at(*tensors_.zeros, last_group * n_words + row / kPerWord), place);
            break;
          default:
            zero = code_in(
                word_at(*tensors_.zeros, row / kPerWord * tensors_.scales->shape[1] + last_group),
                row % kPerWord);
        }
      }
      int code = 0;
      switch (form) {
        case Form::gptq:
          code = code_in(word_at(stored, i / kPerWord * tensors_.n_rows + row), i % kPerWord);
          break;
        case Form::awq:
          code = code_in(word_at(stored, i * n_words + row / kPerWord), place);
          break;
        case Form::packed:
          code = code_in(word_at(stored, row * (k / kPerWord) + i / kPerWord), i % kPerWord);
          break;
        default:
          code = std::to_integer<std::int8_t>(stored.data[static_cast<std::size_t>(row * k + i)]);
      }
      out[i] = static_cast<std::int8_t>(code - zero);
    }
  }
}

void QuantisedMatrix::read_fp8(std::span<const std::int64_t> rows, std::span<float> values) const {
  const Quantisation& quantisation = tensors_.quantisation;
  const bool in_blocks = quantisation.block_rows > 0;
  const std::int64_t k = tensors_.k;
  float* out = values.data();
  for (const std::int64_t row : rows) {
    for (std::int64_t i = 0; i < k; ++i) {
      const float factor = in_blocks
                               ? float_at(*tensors_.scales, row / quantisation.block_rows *
                                                                    tensors_.scales->shape[1] +
                                                                i / quantisation.block_columns)
                               : scale(row, 0);
      const auto bits = std::to_integer<std::uint8_t>(
          tensors_.codes->data[static_cast<std::size_t>(row * k + i)]);
      *out++ = from_e4m3(bits) * factor;
    }
  }
}

void QuantisedMatrix::read_floats(std::span<const std::int64_t> rows,
                                  std::span<float> values) const {
  const Form form = tensors_.quantisation.form;
  if (form == Form::fp8 || form == Form::fp8_inverse) return read_fp8(rows, values);
  thread_local std::vector<std::int8_t> codes;
  codes.resize(values.size());
  read_codes(rows, codes);
  const auto k = static_cast<std::size_t>(tensors_.k);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < k; ++i) {
      values[r * k + i] = static_cast<float>(codes[r * k + i]) *
                          scale(rows[r], group_of(static_cast<std::int64_t>(i)));
    }
  }
}

void QuantisedMatrix::read(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const {
  std::vector<std::int64_t> stored;
  stored.reserve(static_cast<std::size_t>(n_rows));
  for (std::int64_t i = 0; i < n_rows; ++i) stored.push_back(rows_.place(first_row + i));
  const std::size_t n = static_cast<std::size_t>(n_rows * tensors_.k);
  if (keeps_codes_) {
    rows.int8.resize(n);
    read_codes(stored, rows.int8);
    rows.scales.clear();
    rows.scales.reserve(n / kernels::kGroup);
    for (const std::int64_t row : stored) {
      for (std::int64_t i = 0; i < tensors_.k; i += kernels::kGroup) {
        rows.scales.push_back(to_f16(scale(row, group_of(i))).bits);
      }
    }
    return;
  }
  thread_local std::vector<float> buffer;
  std::vector<float>& decoded = kind_ == WeightKind::f32 ? rows.f32 : buffer;
  decoded.resize(n);
  read_floats(stored, decoded);
  if (kind_ != WeightKind::f32) quantize_weights(decoded, n_rows, tensors_.k, kind_, rows);
}

}  // namespace outrider
