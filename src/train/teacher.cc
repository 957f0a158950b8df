// SPDX-License-Identifier: Apache-2.0
#include "train/teacher.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/load_model.h"
#include "model/require_decoder.h"
#include "outrider/error.h"

namespace outrider::train {
namespace {

// Keeps the weights in their stored format, in which the target will decode with the drafter. (As
// f32, bf16 weights took two fifths of a distillation's time: matrix units do not multiply f32.)
std::unique_ptr<LanguageModel> load_frozen(const std::filesystem::path& path, int n_threads) {
  LoadOptions options;
  options.n_threads = n_threads;
  auto model = load_model(path, options);
  require_decoder(model->config(), "load target");
  return model;
}

}  // namespace

Teacher::Teacher(const std::filesystem::path& path, int n_threads)
    : model_(load_frozen(path, n_threads)) {}

void Teacher::run(std::span<const TokenId> tokens, int n_sequences, bool logits,
                  std::span<const int> feature_layers) {
  const std::size_t length = tokens.size() / static_cast<std::size_t>(n_sequences);
  if (length > static_cast<std::size_t>(config().context_length)) {
    throw Error("run target", "sequences",
                fmt::format("at most its context of {} tokens", config().context_length),
                fmt::format("{}", length));
  }
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<TokenBlock> blocks;
  for (int i = 0; i < n_sequences; ++i) {
    sequences.push_back(model_->open({.n_tokens = static_cast<int>(length)}));
    blocks.push_back({.sequence = sequences.back().get(),
                      .tokens = tokens.subspan(static_cast<std::size_t>(i) * length, length),
                      .parents = {}});
  }
  const RowSet rows{.kind = logits ? RowSet::Kind::all : RowSet::Kind::none, .rows = {}};
  model_->forward(blocks, {.logits = rows, .feature_layers = feature_layers}, output_);
}

std::vector<float> Teacher::input_matrix() {
  std::vector<TokenId> all(static_cast<std::size_t>(config().vocabulary_size));
  std::iota(all.begin(), all.end(), 0);
  std::vector<float> matrix(all.size() * static_cast<std::size_t>(config().dim));
  model_->embed(all, matrix);
  return matrix;
}

std::vector<float> Teacher::output_matrix() {
  // The matrix times a unit vector is one of its columns, since all other products are zero. This
  // is exact, with two exceptions. With a quantised matrix the one nonzero product is rounded. A
  // cap on logits (LogitForm) changes a weight w by a fraction of about (w / softcap)^2 / 3. With
  // kColumns vectors in each call, a large matrix is read as rarely as in a wide pass.
  constexpr std::size_t kColumns = 32;
  const auto dim = static_cast<std::size_t>(config().dim);
  const auto n_rows = static_cast<std::size_t>(config().vocabulary_size);
  std::vector<float> matrix(n_rows * dim);
  std::vector<float> unit_vectors;
  ForwardOutput columns;
  for (std::size_t first = 0; first < dim; first += kColumns) {
    const std::size_t n = std::min(kColumns, dim - first);
    unit_vectors.assign(n * dim, 0);
    for (std::size_t i = 0; i < n; ++i) unit_vectors[i * dim + first + i] = 1;
    model_->project(unit_vectors, columns);
    // Writes row by row of the matrix. Column by column, every number would touch another cache
    // line; for a vocabulary of 49,152 that took as long as a training step.
    std::vector<std::span<const float>> values;
    for (std::size_t i = 0; i < n; ++i) values.push_back(columns.logits_row(static_cast<int>(i)));
    for (std::size_t row = 0; row < n_rows; ++row) {
      for (std::size_t i = 0; i < n; ++i) matrix[row * dim + first + i] = values[i][row];
    }
  }
  return matrix;
}

}  // namespace outrider::train
