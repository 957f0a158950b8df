// SPDX-License-Identifier: Apache-2.0
// A quantised matrix of a Hugging Face directory, in the form that the packer reads.
#ifndef OUTRIDER_MODEL_QUANTISED_QUANTISED_MATRIX_H_
#define OUTRIDER_MODEL_QUANTISED_QUANTISED_MATRIX_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/tensor_source.h"
#include "model/quantised/quantisation.h"
#include "model/stored_weights.h"
#include "tensor/matrix.h"

namespace outrider {

// Four-bit codes in a stored int32.
inline constexpr std::int64_t kPerWord = 8;

// The tensors of one quantised matrix, checked by find_quantised.
struct QuantisedTensors {
  Quantisation quantisation;
  std::int64_t n_rows = 0;
  std::int64_t k = 0;
  const TensorView* codes = nullptr;
  const TensorView* scales = nullptr;
  const TensorView* zeros = nullptr;  // null: none
  std::vector<std::int32_t> groups;   // (k) each input's group, if stored; or empty
  std::vector<std::string> names;     // of all tensors of the matrix
};

// The matrix "name" (n_rows, k); without codes if it is stored plain ("name.weight" of a float
// type). Throws Error with the tensor's name if it is missing or has a wrong shape or type.
QuantisedTensors find_quantised(const TensorSource& source, const Quantisation& quantisation,
                                const std::string& name, std::int64_t n_rows, std::int64_t k);

// The type that holds its values. int8 without loss, if its scales are f16 numbers and its groups
// are whole groups of the kernels'; bf16 for FP8, which rounds the scaled codes; otherwise f32.
WeightKind native_kind(const QuantisedTensors& tensors);

// Immutable, thread-safe; the tensors' bytes must outlive it.
class QuantisedMatrix final : public WeightReader {
 public:
  // rows: not turned.
  QuantisedMatrix(QuantisedTensors tensors, WeightKind kind, const StoredRows& rows);

  WeightKind kind() const override { return kind_; }
  std::int64_t n_rows() const override { return rows_.n > 0 ? rows_.n : tensors_.n_rows; }
  std::int64_t k() const override { return tensors_.k; }
  void read(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const override;

 private:
  // Codes minus zeros of some stored rows, (rows.size(), k).
  void read_codes(std::span<const std::int64_t> rows, std::span<std::int8_t> codes) const;
  void read_floats(std::span<const std::int64_t> rows, std::span<float> values) const;
  void read_fp8(std::span<const std::int64_t> rows, std::span<float> values) const;
  std::int64_t group_of(std::int64_t input) const;
  float scale(std::int64_t row, std::int64_t group) const;

  QuantisedTensors tensors_;
  WeightKind kind_;
  StoredRows rows_;
  bool keeps_codes_;  // as int8, without loss
};

// The value of an FP8 number with four bits of exponent and three of fraction: no infinities, and
// NaN if all other bits are set (Micikevicius et al. 2022, arXiv 2209.05433).
float from_e4m3(std::uint8_t bits);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_QUANTISED_QUANTISED_MATRIX_H_
