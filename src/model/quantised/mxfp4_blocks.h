// SPDX-License-Identifier: Apache-2.0
// MXFP4 matrices as stored in Hugging Face directories of gpt-oss.
#ifndef OUTRIDER_MODEL_QUANTISED_MXFP4_BLOCKS_H_
#define OUTRIDER_MODEL_QUANTISED_MXFP4_BLOCKS_H_

#include <cstdint>
#include <span>

#include "io/tensor_source.h"
#include "model/stored_weights.h"
#include "tensor/matrix.h"

namespace outrider {

// Four-bit numbers (a sign, two bits of exponent, one of mantissa), 32 of a row with one power of
// two as scale (OCP Microscaling Formats 1.0, 2023). It is GGUF's type of that name in another
// order. A byte holds two codes, element 2 i in the low half of byte i. A block's exponent plus 127
// is a byte of a separate tensor.
//
// Immutable, thread-safe; the tensors' bytes must outlive it.
class Mxfp4Blocks final : public WeightReader {
 public:
  static constexpr int kBlock = 32;
  static constexpr int kBytes = kBlock / 2;  // of a block's codes

  // The matrix's place in both tensors, whose outer dimensions together count rows.
  struct Part {
    std::int64_t first_row = 0;  // among all stored rows
    std::int64_t n_rows = 0;     // to be read
    std::int64_t k = 0;          // a multiple of kBlock
  };
  // codes (..., k / 32, 16) and scales (..., k / 32): bytes. rows: not turned.
  Mxfp4Blocks(const TensorView& codes, const TensorView& scales, WeightKind kind, const Part& part,
              const StoredRows& rows)
      : codes_(codes.data), scales_(scales.data), kind_(kind), part_(part), rows_(rows) {}

  WeightKind kind() const override { return kind_; }
  std::int64_t n_rows() const override { return part_.n_rows; }
  std::int64_t k() const override { return part_.k; }
  // As stored if the kind is mxfp4; otherwise decoded, exactly, and rounded.
  void read(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const override;

 private:
  std::span<const std::byte> codes_;
  std::span<const std::byte> scales_;
  WeightKind kind_;
  Part part_;
  StoredRows rows_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_QUANTISED_MXFP4_BLOCKS_H_
