// SPDX-License-Identifier: Apache-2.0
// A weight matrix, packed for one kernel table, and the products with it.
#ifndef OUTRIDER_TENSOR_MATRIX_H_
#define OUTRIDER_TENSOR_MATRIX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/memory/pooled_memory.h"
#include "kernels/table.h"
#include "tensor/team.h"

namespace outrider {

using kernels::KernelTable;
using kernels::WeightKind;

// Rows of a stored matrix in the form that the packer reads (kernels/table.h, TileSource). Exactly
// the vectors of the kind are filled, with as many values for every row.
struct WeightRows {
  std::vector<float> f32;               // f32: (n_rows, k)
  std::vector<std::uint16_t> bf16;      // bf16: (n_rows, k)
  std::vector<std::int8_t> int8;        // int8: (n_rows, k)
  std::vector<std::uint8_t> int4;       // int4: (n_rows, k), one value 0..15 a byte
  std::vector<std::uint16_t> scales;    // int8, int4: f16 bits, (n_rows, groups_of(k))
  std::vector<std::uint16_t> minimums;  // int4: f16 bits, (n_rows, groups_of(k))
  // For kinds of stored blocks, with scales and minimums: kernels::RowNumbers gives the number of
  // each for a row.
  std::vector<std::uint8_t> codes;  // (n_rows, k)
  std::vector<std::int8_t> sub_scales;
  std::vector<std::uint8_t> sub_minimums;
  std::vector<float> f32_scales;
};

// The source of a matrix: returns ranges of its rows (outputs), in any order, from any thread.
class WeightReader {
 public:
  virtual ~WeightReader() = default;
  virtual WeightKind kind() const = 0;
  virtual std::int64_t n_rows() const = 0;  // outputs
  virtual std::int64_t k() const = 0;       // inputs
  virtual void read(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const = 0;
};

// Rounds float rows (n_rows, k) to f32, bf16, int8 or int4, group by group along k; Error for kinds
// that are only read from files. int8: scale = f16(max|w| / 127), q = round-half-even(w / scale)
// within -127..127. int4: minimum = f16(min w), scale = f16((max w - min w) / 15), q =
// round-half-even((w - minimum) / scale) within 0..15. A scale of 0 gives q = 0. A group with a NaN
// gets a NaN scale, so that its products are NaN.
void quantize_weights(std::span<const float> values, std::int64_t n_rows, std::int64_t k,
                      WeightKind kind, WeightRows& rows);

// The input forms that matrices read besides plain floats.
struct ActivationForms {
  bool int8 = false;          // quantised weights with scales of groups
  bool blocks = false;        // the same with scales of blocks
  bool block_halves = false;  // the same with sums of half groups
  bool bf16 = false;          // bf16 weights, if the table multiplies bf16 by bf16

  // The forms that a matrix of that kind reads with that table.
  static ActivationForms of(WeightKind kind, const KernelTable& table);
  ActivationForms& operator|=(const ActivationForms& other);
  bool any() const { return int8 || blocks || bf16; }
};

// The inputs of a product, in every form that some weight kind reads. The team writes them row by
// row; storage is reused from pass to pass and only grows.
class Activations {
 public:
  // Allocates n_rows rows of k floats and those forms. Called by one thread, outside the team's
  // work. any_rows: products may begin at any row, not only at the first.
  enum class Reads { all_rows, any_rows };
  void resize(int n_rows, int k, const ActivationForms& forms, Reads reads = Reads::all_rows);
  float* row(int index) { return x_.data() + static_cast<std::size_t>(index) * k_; }
  const float* row(int index) const { return x_.data() + static_cast<std::size_t>(index) * k_; }
  int n_rows() const { return n_rows_; }
  int k() const { return k_; }
  // Elements that share a scale in one of the forms.
  int unit() const { return forms_.blocks ? kernels::kBlock : kernels::kGroup; }
  // Converts one finished row to the other forms.
  void quantize_row(const KernelTable& table, int index);
  // Converts a part of it: n elements from `first` on, a multiple of unit(), up to another multiple
  // or to the end of the row. Several threads may share a row in this way.
  void quantize_part(const KernelTable& table, int index, int first, int n);

 private:
  friend class Matrix;
  int n_rows_ = 0;
  int k_ = 0;
  int slots_ = 0;  // kernels::row_slots(n_rows_)
  ActivationForms forms_;
  std::vector<float> x_;
  std::vector<std::int8_t> q_;  // this and the following: (groups, slots, ...), kernels/table.h
  std::vector<float> scales_;
  std::vector<std::int32_t> sums_;
  std::vector<float> scaled_sums_;
  std::vector<std::int8_t> block_q_;  // and those of blocks (kernels/table.h, QuantizedBlocks)
  std::vector<float> block_scales_;
  std::vector<std::int16_t> group_sums_;
  std::vector<float> float_sums_;
  std::vector<std::int16_t> half_sums_;
  std::vector<std::uint16_t> rounded_;
};

// Immutable once packed; multiply is thread-safe between teams.
class Matrix {
 public:
  Matrix() = default;
  // Reads and packs all rows, with tiles divided among n_threads.
  static Matrix pack(const WeightReader& reader, const KernelTable& table, int n_threads);

  // A matrix that is described but not packed; no product with it is possible. Copies of it in
  // memory, placed_at(), are packed tile by tile.
  static Matrix in_file(std::shared_ptr<const WeightReader> reader, const KernelTable& table);
  bool is_in_file() const { return tiles_ == nullptr && reader_ != nullptr; }
  // These rows (outputs) of such a matrix, packed; reads nothing of the others.
  Matrix pack_rows(const Range& rows, int n_threads) const;
  // The same matrix in packed_bytes() of memory, aligned to a cache line, with no tile packed yet.
  Matrix placed_at(PooledMemory memory) const;
  // Packs these tiles of [0, n_tiles()); several threads may pack different ones. `rows` is
  // reusable working memory.
  void pack_tiles(const Range& tiles, WeightRows& rows) const;
  std::int64_t n_tiles() const;

  int n_columns() const { return n_columns_; }  // outputs
  int k() const { return k_; }
  WeightKind kind() const { return kind_; }
  std::size_t packed_bytes() const { return n_bytes_; }
  // Its tiles, unless it is in_file; for int8 and int4 they are the same for every kernel table.
  // Empty once released.
  std::span<const std::byte> packed() const {
    return {tiles_.get(), tiles_ == nullptr ? std::size_t{0} : n_bytes_};
  }
  // Frees the memory of its tiles, for a matrix that only a device uses from then on: no product
  // with it is possible on the host.
  void release() { tiles_ = nullptr; }
  // The forms of its inputs that a product with it reads.
  ActivationForms reads() const { return ActivationForms::of(kind_, *table_); }

  // y (x.n_rows(), n_columns()), rows y_stride apart, = x W^T. Tiles are divided among the team; a
  // thread that has finished its part takes tiles of others. The rows of x must be finished (a
  // barrier before); y is complete after a barrier.
  void multiply(const Team& team, const Activations& x, float* y, std::size_t y_stride) const;

  // A part of such a product: some rows and groups of tiles alone (PartialProduct, multiply_each).
  void multiply_part(const Activations& x, const Range& rows, const Range& groups, float* y,
                     std::size_t y_stride) const;
  // The number of groups of tiles, and the least that a thread takes at once.
  std::int64_t n_groups() const;
  std::int64_t min_groups() const;

  // Announces that the team's next product is with this matrix: threads that wait at a barrier may
  // prefetch its weights.
  void set_prefetch(const Team& team) const;

 private:
  // Describes only; throws Error on a shape that cannot be packed.
  Matrix(const WeightReader& reader, const KernelTable& table);
  void pack_tiles(const WeightReader& reader, const Range& tiles, WeightRows& rows) const;
  std::int64_t tile_bytes() const { return static_cast<std::int64_t>(n_bytes_) / n_tiles(); }
  // How work is divided (Team::parallel_for_dynamic): n groups of n_tiles tiles, at least
  // `min_size` at once.
  struct Parts {
    std::int64_t n;
    std::int64_t n_tiles;
    std::int64_t min_size;
  };
  Parts parts_for(const Team& team) const;
  kernels::MatmulArgs arguments(const Activations& x, const Range& rows, float* y,
                                std::size_t y_stride) const;

  const KernelTable* table_ = nullptr;
  WeightKind kind_ = WeightKind::f32;
  int n_columns_ = 0;
  int k_ = 0;
  std::size_t n_bytes_ = 0;
  PooledMemory tiles_;
  std::shared_ptr<const WeightReader> reader_;  // for packing on demand
};

// y (rows of x, n_columns), rows y_stride apart, = x W^T of some rows of x, which must be resized
// for any_rows (Activations::Reads).
struct PartialProduct {
  const Matrix* matrix;
  const Activations* x;
  Range rows;
  float* y;  // of the first of these rows
  std::size_t y_stride;
};

// n products with matrices of one shape, product(i) the i-th, divided among the team as one,
// otherwise as Matrix::multiply.
template <typename ProductOf>
void multiply_each(const Team& team, std::size_t n, const ProductOf& product) {
  if (n == 0) return;
  const Matrix& first = *product(0).matrix;
  const std::int64_t n_groups = first.n_groups();
  team.parallel_for_dynamic(
      static_cast<std::int64_t>(n) * n_groups, first.min_groups(), [&](const Range& part) {
        for (std::int64_t at = part.begin; at < part.end;) {
          const std::int64_t begin = at / n_groups * n_groups;
          const std::int64_t end = std::min(part.end, begin + n_groups);
          const PartialProduct its = product(static_cast<std::size_t>(at / n_groups));
          its.matrix->multiply_part(*its.x, its.rows, {at - begin, end - begin}, its.y,
                                    its.y_stride);
          at = end;
        }
      });
}

}  // namespace outrider

#endif  // OUTRIDER_TENSOR_MATRIX_H_
