// SPDX-License-Identifier: Apache-2.0
// Reads weights from a file by name: every tensor is checked before the first one is packed.
#ifndef OUTRIDER_MODEL_WEIGHT_LOADER_H_
#define OUTRIDER_MODEL_WEIGHT_LOADER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "io/tensor_source.h"
#include "model/pass/blocks.h"
#include "model/quantised/quantisation.h"
#include "model/ranks/column_split.h"
#include "model/stored_weights.h"
#include "tensor/matrix.h"

namespace outrider {

enum class NamingScheme { hugging_face, gguf };

struct WeightOptions {
  NamingScheme names = NamingScheme::hugging_face;
  std::optional<WeightKind> kind;  // empty: as stored (in a quantised model bf16 widens to f32)
  // The quantisation of the source's matrices, if they are not plain tensors.
  std::optional<Quantisation> quantisation = {};
  // Experts are described but not packed (Matrix::in_file); the source must outlive them.
  bool experts_in_file = false;
  // For a rank: all matrices except f32 ones are described but not packed, and load_decoder_weights
  // packs the rank's part. The source must outlive them.
  std::optional<RankShare> share = {};
  const KernelTable* table = nullptr;
  int n_threads = 1;
  std::function<void(double)> progress;  // may be empty
};

// Whether a product has a bias in the file, must have one, or must not.
enum class Bias { never, always, if_stored };

// Of a matrix of n heads with n_stored rows each: rows [first, first + n_rows) of every head.
struct HeadRows {
  int n = 0;
  int n_stored = 0;
  int first = 0;
  int n_rows = 0;
  bool transposed = false;  // the result is (k, n_rows)
};

// Throws Error with the tensor, what was expected and what was found, if a tensor is missing or has
// a wrong shape or type. Values are not checked to be finite: that would cost a pass over the file,
// and NaN appears in the first logits. Not thread-safe.
class WeightLoader {
 public:
  // Both must outlive the loader.
  WeightLoader(const TensorSource& source, const WeightOptions& options)
      : source_(source), options_(options) {}

  // Calls walk(*this) twice; walk requests tensors and returns its result. The first call checks
  // every tensor and returns empty vectors and matrices; the second reads them.
  template <typename Walk>
  auto run(const Walk& walk) {
    (void)walk(*this);
    reading_ = true;
    n_bytes_total_ = std::exchange(n_bytes_seen_, 0);
    return walk(*this);
  }

  bool has(const std::string& name) const { return source_.find(name) != nullptr; }
  // The tensor of that name, after a check of its type and shape.
  const TensorView& tensor(const std::string& name, const std::vector<std::int64_t>& shape);
  std::vector<float> vector(const std::string& name, int n);  // (n)
  // (n_taps, n_channels), stored as (n_channels, 1, n_taps) or (n_channels, n_taps).
  std::vector<float> filter(const std::string& name, int n_channels, int n_taps);
  // "name.weight" (n_columns, k) and, according to `bias`, "name.bias" (n_columns).
  // interleaved_head_dim as in stored_weights.h.
  Linear linear(const std::string& name, int n_columns, int k, Bias bias,
                int interleaved_head_dim = 0);
  // The same for some rows of "name.weight" (n_stored, k), or turned, and the same rows of
  // "name.bias" (n_stored).
  Linear linear_rows(const std::string& name, int n_stored, int k, Bias bias,
                     const StoredRows& rows);
  // "name.weight" (n_columns, k) of one expert.
  Matrix expert(const std::string& name, int n_columns, int k);

  // "name.weight" (n_columns, k) in f32, whatever type is asked for.
  Matrix f32_matrix(const std::string& name, int n_columns, int k);
  // The same for one row, stored (1, k) or (k).
  Matrix f32_row(const std::string& name, int k);
  // From a tensor with all experts' matrices, (n, n_stored, k), or turned, (n, k, n_stored): the
  // given rows of each.
  std::vector<Matrix> stacked(const std::string& name, int n, int n_stored, int k,
                              const StoredRows& rows);
  // From a tensor with a matrix (n_columns, k) for each of n heads: all of them. As stored, even if
  // a quantised type is asked for.
  std::vector<Matrix> stacked_heads(const std::string& name, int n, int n_columns, int k);
  // From "name.weight" (rows.n * rows.n_stored, k): a matrix for each head. In f32, or in bf16 if
  // it is stored so and not quantised: a transposed matrix has no groups along its rows.
  std::vector<Matrix> parts_of_heads(const std::string& name, int k, const HeadRows& rows);
  // The same as stacked() for "name_blocks" (n, n_stored, k / 32, 16) and "name_scales" (n,
  // n_stored, k / 32), bytes of MXFP4 (quantised/mxfp4_blocks.h).
  std::vector<Matrix> stacked_blocks(const std::string& name, int n, int n_stored, int k,
                                     const StoredRows& rows);
  // From the tensor of that name, (n, n_stored): the given elements of each row, (n, rows.n), or
  // all.
  std::vector<float> stacked_vectors(const std::string& name, int n, int n_stored,
                                     const StoredRows& rows);

  // Names of the source's tensors under `prefix` that could be weights and were not requested, in
  // the source's order. Tensors that follow from the configuration (RoPE tables, causal masks),
  // which some checkpoints store, do not count.
  std::vector<std::string> unread_below(std::string_view prefix) const;
  // Counts the tensor as requested without reading it.
  void ignore(const std::string& name) { asked_.insert(name); }
  // Throws Error with the first of them: without it the model would be another one.
  void require_all_read_below(std::string_view prefix) const;

  const WeightOptions& options() const { return options_; }
  // Properties of all matrices in the first walk.
  bool has_quantized() const { return has_quantized_; }
  ActivationForms activation_forms() const { return activation_forms_; }
  bool all_f32() const { return !has_quantized_ && !has_bf16_; }

 private:
  enum class Held { packed, as_experts };
  const TensorView& bytes(const std::string& name, const std::vector<std::int64_t>& shape);
  const TensorView& find(const std::string& name, const std::vector<std::int64_t>& shape);
  WeightKind kind_for(WeightKind native) const;
  Matrix pack_f32(const TensorView& view, std::vector<std::int64_t> shape);
  // The type of matrices of single heads, which --weights never quantises. Records it in the first
  // walk.
  WeightKind kind_of_heads(WeightKind native);
  // Packs the matrix, or describes it for experts that stay in their file; records its type in the
  // first walk.
  template <typename Reader>
  Matrix hold(Reader reader, WeightKind native, Held held);
  // Releases the pages of a tensor that has been read.
  void release(const TensorView& view, Held held) const;
  Linear linear_rows(const std::string& name, int n_stored, int k, Bias bias,
                     const StoredRows& rows, Held held);
  std::optional<Linear> quantised_rows(const std::string& name, int n_stored, int k, Bias bias,
                                       const StoredRows& rows, Held held);
  std::vector<float> bias_of(const std::string& name, int n_stored, Bias bias,
                             const StoredRows& rows);
  void advance(std::size_t n_bytes);

  const TensorSource& source_;
  const WeightOptions& options_;
  bool reading_ = false;  // false: the first walk, which checks
  bool has_quantized_ = false;
  bool has_bf16_ = false;
  ActivationForms activation_forms_;
  std::unordered_set<std::string> asked_;
  std::size_t n_bytes_seen_ = 0;
  std::size_t n_bytes_total_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_WEIGHT_LOADER_H_
