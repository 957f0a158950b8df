// SPDX-License-Identifier: Apache-2.0
// A stored matrix in the form that the packer reads: connects a file's tensors to tensor/matrix.h.
#ifndef OUTRIDER_MODEL_STORED_WEIGHTS_H_
#define OUTRIDER_MODEL_STORED_WEIGHTS_H_

#include <cstdint>

#include "io/tensor_source.h"
#include "tensor/matrix.h"

namespace outrider {

// The type of weights that holds a stored type's values exactly (f16 widens to f32).
// `is_weight_type` says whether there is one.
bool is_weight_type(ElementType type);
WeightKind native_kind(ElementType type);

// Which rows of a stored matrix make up a matrix, and in which order. Whole rows are reordered, so
// no value changes.
struct StoredRows {
  std::int64_t first = 0;
  std::int64_t n = 0;  // 0: all of them
  // Rows come in runs of `run`, whose starts are `stride` apart: one of several products whose rows
  // alternate head by head. 0: rows are contiguous.
  std::int64_t run = 0;
  std::int64_t stride = 0;
  // GGUF stores the query and key rows of each head with a rotated pair adjacent (rows 2i, 2i + 1).
  // The engine uses Hugging Face's order, with the halves of a pair apart (rows i, i + head_dim /
  // 2). The width of such heads; 0: rows are in the engine's order.
  std::int64_t interleaved_head_dim = 0;
  // The tensor is (k, rows), of floats: the matrix's rows are the tensor's columns.
  bool turned = false;

  // Where row `row` of the matrix is stored.
  std::int64_t place(std::int64_t row) const;
};

// Reads rows of a matrix (n_rows, k) in a requested type: copies the stored values if that is the
// native one, otherwise decodes them to f32 and rounds.
//
// Immutable, thread-safe; the tensor's bytes must outlive it.
class StoredWeights : public WeightReader {
 public:
  // The tensor must have a weight type and 2 dimensions with these rows; or 3, of which the first
  // two together count its rows (rows.n must be set then).
  StoredWeights(const TensorView& tensor, WeightKind kind, const StoredRows& rows);
  StoredWeights(const TensorView& tensor, WeightKind kind, int interleaved_head_dim)
      : StoredWeights(tensor, kind, StoredRows{.interleaved_head_dim = interleaved_head_dim}) {}

  WeightKind kind() const override { return kind_; }
  std::int64_t n_rows() const override {
    return rows_.n > 0 ? rows_.n : tensor_.shape[rows_.turned ? 1 : 0];
  }
  std::int64_t k() const override { return rows_.turned ? tensor_.shape[0] : tensor_.shape.back(); }
  void read(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const override;

 private:
  const std::byte* row_bytes(std::int64_t row) const;
  void read_bf16(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const;
  void read_int8(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const;
  void read_int4(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const;
  void read_blocks(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const;
  void read_decoded(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const;
  void read_turned(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const;

  TensorView tensor_;
  WeightKind kind_;
  StoredRows rows_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_STORED_WEIGHTS_H_
