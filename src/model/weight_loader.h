// Weights out of a file by name: every tensor checked before the first one is packed.
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
  // How the source's matrices are quantised, where they are not plain tensors.
  std::optional<Quantisation> quantisation = {};
  // Experts are described alone (Matrix::in_file); the source outlives them.
  bool experts_in_file = false;
  // Of a rank: all matrices but f32 ones are described alone, and load_decoder_weights packs the
  // rank's part of them. The source outlives them.
  std::optional<RankShare> share = {};
  const KernelTable* table = nullptr;
  int n_threads = 1;
  std::function<void(double)> progress;  // may be empty
};

// Whether a product has a bias in the file, must have one, or must not.
enum class Bias { never, always, if_stored };

// Of a matrix of n heads, n_stored rows each, of every head the rows [first, first + n_rows).
struct HeadRows {
  int n = 0;
  int n_stored = 0;
  int first = 0;
  int n_rows = 0;
  bool transposed = false;  // (k, n_rows) is what is wanted
};

// Throws Error naming the tensor, what was expected and what came, if a tensor is missing or has a
// wrong shape or type. That the numbers are finite is not checked: it would cost a pass over the
// file, and NaN shows in the first logits. Not thread-safe.
class WeightLoader {
 public:
  // Both outlive the loader.
  WeightLoader(const TensorSource& source, const WeightOptions& options)
      : source_(source), options_(options) {}

  // Calls walk(*this), which asks for tensors and returns what it makes of them, twice: first to
  // check every one, when vectors and matrices come back empty, then to read them.
  template <typename Walk>
  auto run(const Walk& walk) {
    (void)walk(*this);
    reading_ = true;
    n_bytes_total_ = std::exchange(n_bytes_seen_, 0);
    return walk(*this);
  }

  bool has(const std::string& name) const { return source_.find(name) != nullptr; }
  // The tensor of that name, once its type and shape are known to be right.
  const TensorView& tensor(const std::string& name, const std::vector<std::int64_t>& shape);
  std::vector<float> vector(const std::string& name, int n);  // (n)
  // (n_taps, n_channels) of what is stored (n_channels, 1, n_taps) or (n_channels, n_taps).
  std::vector<float> filter(const std::string& name, int n_channels, int n_taps);
  // "name.weight" (n_columns, k) and, according to `bias`, "name.bias" (n_columns).
  // interleaved_head_dim as in stored_weights.h.
  Linear linear(const std::string& name, int n_columns, int k, Bias bias,
                int interleaved_head_dim = 0);
  // The same, of some rows of "name.weight" (n_stored, k), or turned, and as many of "name.bias"
  // (n_stored).
  Linear linear_rows(const std::string& name, int n_stored, int k, Bias bias,
                     const StoredRows& rows);
  // "name.weight" (n_columns, k) of one expert.
  Matrix expert(const std::string& name, int n_columns, int k);

  // "name.weight" (n_columns, k) in f32, whatever kind is asked for.
  Matrix f32_matrix(const std::string& name, int n_columns, int k);
  // The same of one row, stored (1, k) or (k).
  Matrix f32_row(const std::string& name, int k);
  // Of the tensor of that name, which holds all experts' matrices, n of n_stored rows one behind
  // the other, (n, n_stored, k), or turned ones, (n, k, n_stored), those rows of each.
  std::vector<Matrix> stacked(const std::string& name, int n, int n_stored, int k,
                              const StoredRows& rows);
  // Of the tensor of that name, which holds a matrix (n_columns, k) for each of n heads, all of
  // them. As stored, whatever quantised kind is asked for.
  std::vector<Matrix> stacked_heads(const std::string& name, int n, int n_columns, int k);
  // Of "name.weight" (rows.n * rows.n_stored, k) a matrix for each head. In f32, or bf16 where it
  // is stored so and nothing is quantised: what is transposed has lost the groups of its rows.
  std::vector<Matrix> parts_of_heads(const std::string& name, int k, const HeadRows& rows);
  // The same of "name_blocks" (n, n_stored, k / 32, 16) and "name_scales" (n, n_stored, k / 32),
  // bytes of MXFP4 (quantised/mxfp4_blocks.h).
  std::vector<Matrix> stacked_blocks(const std::string& name, int n, int n_stored, int k,
                                     const StoredRows& rows);
  // Of the tensor of that name, (n, n_stored), those places of each row: (n, rows.n), or all.
  std::vector<float> stacked_vectors(const std::string& name, int n, int n_stored,
                                     const StoredRows& rows);

  // Names of the source's tensors below `prefix` that could be weights and that no walk has asked
  // for, in the source's order. What some checkpoints store beside weights and follows from their
  // configuration (tables of RoPE, causal masks) is no weight.
  std::vector<std::string> unread_below(std::string_view prefix) const;
  // Counts as asked for, without being read.
  void ignore(const std::string& name) { asked_.insert(name); }
  // Throws Error that names the first of them: without it the model would be another one.
  void require_all_read_below(std::string_view prefix) const;

  const WeightOptions& options() const { return options_; }
  // Of all matrices of the first walk.
  bool has_quantized() const { return has_quantized_; }
  InputForms input_forms() const { return input_forms_; }
  bool all_f32() const { return !has_quantized_ && !has_bf16_; }

 private:
  enum class Held { packed, as_experts };
  const TensorView& bytes(const std::string& name, const std::vector<std::int64_t>& shape);
  const TensorView& find(const std::string& name, const std::vector<std::int64_t>& shape);
  WeightKind kind_for(WeightKind native) const;
  Matrix pack_f32(const TensorView& view, std::vector<std::int64_t> shape);
  // Of matrices of single heads, which no --weights rounds to a quantised kind. In the first walk
  // notes the kind.
  WeightKind kind_of_heads(WeightKind native);
  // Packs the matrix or, of experts that stay in their file, describes it; in the first walk notes
  // its kind.
  template <typename Reader>
  Matrix hold(Reader reader, WeightKind native, Held held);
  // Of a tensor that has been read.
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
  InputForms input_forms_;
  std::unordered_set<std::string> asked_;
  std::size_t n_bytes_seen_ = 0;
  std::size_t n_bytes_total_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_WEIGHT_LOADER_H_
