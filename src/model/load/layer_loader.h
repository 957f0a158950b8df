// SPDX-License-Identifier: Apache-2.0
// Loads the tensors of one layer, by the part of their names after the layer's prefix.
#ifndef OUTRIDER_MODEL_LOAD_LAYER_LOADER_H_
#define OUTRIDER_MODEL_LOAD_LAYER_LOADER_H_

#include <string>
#include <utility>
#include <vector>

#include "model/weight_loader.h"

namespace outrider {

// The names of a tensor in Hugging Face directories and GGUF files, without ".weight".
struct TensorName {
  const char* hugging_face;
  const char* gguf;
};

// Throws as WeightLoader does. The loader must outlive it.
class LayerLoader {
 public:
  LayerLoader(WeightLoader& loader, std::string prefix)
      : loader_(loader), prefix_(std::move(prefix)) {}

  bool is_gguf() const { return loader_.options().names == NamingScheme::gguf; }
  std::vector<float> vector(const TensorName& name, int n, const char* ending = ".weight") const {
    return loader_.vector(full(name) + ending, n);
  }
  // For a tensor whose name has no ending.
  std::vector<float> plain_vector(const TensorName& name, int n) const {
    return loader_.vector(full(name), n);
  }
  bool has(const TensorName& name, const char* ending = ".weight") const {
    return loader_.has(full(name) + ending);
  }
  // (n_rows, width), as stored: a table from which rows are looked up.
  TensorView table(const TensorName& name, int n_rows, int width) {
    return loader_.tensor(full(name) + ".weight", {n_rows, width});
  }
  // In f32, whatever type is asked for.
  Matrix f32_matrix(const TensorName& name, int n_columns, int k) {
    return loader_.f32_matrix(full(name), n_columns, k);
  }
  // A matrix of one row, which may be stored as a vector.
  Matrix f32_row(const TensorName& name, int k) { return loader_.f32_row(full(name), k); }
  // Of one expert, without a bias.
  Matrix expert(const TensorName& name, int n_columns, int k) {
    return loader_.expert(full(name), n_columns, k);
  }
  // n matrices in one tensor, as in WeightLoader::stacked.
  std::vector<Matrix> stacked(const TensorName& name, const char* ending, int n, int n_stored,
                              int k, const StoredRows& rows = {}) {
    return loader_.stacked(full(name) + ending, n, n_stored, k, rows);
  }
  std::vector<Matrix> stacked_blocks(const TensorName& name, int n, int n_stored, int k,
                                     const StoredRows& rows = {}) {
    return loader_.stacked_blocks(full(name), n, n_stored, k, rows);
  }
  // One matrix for each head, as in WeightLoader.
  std::vector<Matrix> stacked_heads(const TensorName& name, int n, int n_columns, int k) {
    return loader_.stacked_heads(full(name) + ".weight", n, n_columns, k);
  }
  std::vector<Matrix> parts_of_heads(const TensorName& name, int k, const HeadRows& rows) {
    return loader_.parts_of_heads(full(name), k, rows);
  }
  // n vectors in one tensor, as in WeightLoader::stacked_vectors.
  std::vector<float> stacked_vectors(const TensorName& name, const char* ending, int n,
                                     int n_stored, const StoredRows& rows = {}) const {
    return loader_.stacked_vectors(full(name) + ending, n, n_stored, rows);
  }
  // Counts the tensor as read without loading it.
  void ignore(const TensorName& name) { loader_.ignore(full(name) + ".weight"); }
  std::vector<float> bias(const TensorName& name, int n) const {
    return loader_.vector(full(name) + ".bias", n);
  }
  // A convolution's weights, one filter of n_taps for each channel, as (n_taps, n_channels). Stored
  // (n_channels, 1, n_taps); in GGUF without the 1.
  std::vector<float> filter(const TensorName& name, int n_channels, int n_taps) const {
    return loader_.filter(full(name) + ".weight", n_channels, n_taps);
  }
  // A norm that subtracts the mean, (width), with its bias.
  Norm layer_norm(const TensorName& name, int width, float epsilon) const {
    return {.weight = vector(name, width),
            .epsilon = epsilon,
            .removes_mean = true,
            .bias = loader_.vector(full(name) + ".bias", width)};
  }
  // interleaved_head_dim as in stored_weights.h.
  Linear linear(const TensorName& name, int n_columns, int k, Bias bias,
                int interleaved_head_dim = 0) {
    return loader_.linear(full(name), n_columns, k, bias, interleaved_head_dim);
  }
  // One of several products stored in one matrix (n_rows_stored, k): the rows from first_row on.
  Linear linear_rows(const TensorName& name, int n_rows_stored, int first_row, int n_columns, int k,
                     Bias bias) {
    return linear_rows(name, n_rows_stored, k, bias, {.first = first_row, .n = n_columns});
  }
  Linear linear_rows(const TensorName& name, int n_rows_stored, int k, Bias bias,
                     const StoredRows& rows) {
    return loader_.linear_rows(full(name), n_rows_stored, k, bias, rows);
  }

 private:
  std::string full(const TensorName& name) const {
    return prefix_ + (is_gguf() ? name.gguf : name.hugging_face);
  }

  WeightLoader& loader_;
  std::string prefix_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_LAYER_LOADER_H_
