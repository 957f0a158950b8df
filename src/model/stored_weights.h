// A stored matrix as the packer wants it: the bridge from a file's tensors to tensor/matrix.h.
#ifndef OUTRIDER_MODEL_STORED_WEIGHTS_H_
#define OUTRIDER_MODEL_STORED_WEIGHTS_H_

#include <cstdint>

#include "io/tensor_source.h"
#include "tensor/matrix.h"

namespace outrider {

// The kind that holds a stored type's values exactly (f16 widens to f32). `is_weight_type` says for
// which types there is one.
bool is_weight_type(ElementType type);
WeightKind native_kind(ElementType type);

// Which rows of a stored matrix make up a matrix, and in which order. Whole rows change places, so
// no value changes.
struct StoredRows {
  std::int64_t first = 0;
  std::int64_t n = 0;  // 0: all of them
  // Rows come in runs of so many, their beginnings `stride` apart: one of several products whose
  // rows take turns head by head. 0: they follow one another.
  std::int64_t run = 0;
  std::int64_t stride = 0;
  // GGUF keeps the query and key rows of each head so that a rotated pair lies side by side (rows
  // 2i, 2i + 1); we want the pair's halves apart (rows i, i + head_dim / 2), as Hugging Face stores
  // them. The width of such heads; 0: rows are in their order.
  std::int64_t interleaved_head_dim = 0;
  // The tensor is (k, rows), of floats: what is called its rows here are its columns.
  bool turned = false;

  // Where row `row` of the matrix is stored.
  std::int64_t place(std::int64_t row) const;
};

// Reads rows of a matrix (n_rows, k) in a wanted kind: copies the stored values where the kind is
// the native one, otherwise decodes them to f32 and rounds.
//
// Immutable, thread-safe; the tensor's bytes must outlive it.
class StoredWeights : public WeightReader {
 public:
  // The tensor has a weight type, 2 dimensions and the rows; or 3, whose first two count its rows
  // together (rows.n says how many of them then).
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
