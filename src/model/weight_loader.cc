// SPDX-License-Identifier: Apache-2.0
#include "model/weight_loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "model/quantised/mxfp4_blocks.h"
#include "model/quantised/quantised_matrix.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr std::string_view kOperation = "load weights";

// Biases are ordered like their rows.
std::vector<float> chosen(const std::vector<float>& stored, const StoredRows& rows) {
  std::vector<float> values(rows.n > 0 ? static_cast<std::size_t>(rows.n) : stored.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = stored[static_cast<std::size_t>(rows.place(static_cast<std::int64_t>(i)))];
  }
  return values;
}

// Old checkpoints hold RoPE's frequencies; GPT-2's and GPT-NeoX's also their causal masks.
bool follows_from_config(std::string_view name) {
  constexpr std::string_view kEndings[] = {".rotary_emb.inv_freq", ".attn.bias",
                                           ".attn.masked_bias", ".attention.bias",
                                           ".attention.masked_bias"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [name](std::string_view ending) { return name.ends_with(ending); });
}

// Rows (n_rows, k) in memory.
class RowsInMemory : public WeightReader {
 public:
  RowsInMemory(std::vector<float> values, std::int64_t n_rows, std::int64_t k, WeightKind kind)
      : values_(std::move(values)), n_rows_(n_rows), k_(k), kind_(kind) {}

  WeightKind kind() const override { return kind_; }
  std::int64_t n_rows() const override { return n_rows_; }
  std::int64_t k() const override { return k_; }
  void read(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const override {
    quantize_weights(std::span(values_).subspan(static_cast<std::size_t>(first_row * k_),
                                                static_cast<std::size_t>(n_rows * k_)),
                     n_rows, k_, kind_, rows);
  }

 private:
  std::vector<float> values_;
  std::int64_t n_rows_;
  std::int64_t k_;
  WeightKind kind_;
};

// (n_columns, n_rows) from (n_rows, n_columns).
std::vector<float> transposed(const std::vector<float>& rows, std::size_t n_rows,
                              std::size_t n_columns) {
  std::vector<float> columns(rows.size());
  for (std::size_t i = 0; i < n_rows; ++i) {
    for (std::size_t j = 0; j < n_columns; ++j) columns[j * n_rows + i] = rows[i * n_columns + j];
  }
  return columns;
}

// The part of the tensor at that index of its first dimension.
TensorView part_of(const TensorView& view, int place) {
  const std::size_t n_bytes = view.data.size() / static_cast<std::size_t>(view.shape.front());
  TensorView part = view;
  part.shape.erase(part.shape.begin());
  part.data = view.data.subspan(static_cast<std::size_t>(place) * n_bytes, n_bytes);
  return part;
}

}  // namespace

const TensorView& WeightLoader::find(const std::string& name,
                                     const std::vector<std::int64_t>& shape) {
  const TensorView* found = source_.find(name);
  if (found == nullptr) {
    throw Error(kOperation, source_.description(), fmt::format("a tensor {}", name), "none");
  }
  if (found->shape != shape) {
    throw Error(kOperation, source_.description(),
                fmt::format("tensor {} of shape ({})", name, fmt::join(shape, ", ")),
                fmt::format("({})", fmt::join(found->shape, ", ")));
  }
  asked_.insert(name);
  return *found;
}

const TensorView& WeightLoader::tensor(const std::string& name,
                                       const std::vector<std::int64_t>& shape) {
  const TensorView& found = find(name, shape);
  if (!is_weight_type(found.type)) {
    throw Error(kOperation, source_.description(),
                fmt::format("tensor {} of a float type or one of GGUF's quantised ones", name),
                found.type_name());
  }
  return found;
}

const TensorView& WeightLoader::bytes(const std::string& name,
                                      const std::vector<std::int64_t>& shape) {
  const TensorView& found = find(name, shape);
  if (found.type != ElementType::u8) {
    throw Error(kOperation, source_.description(), fmt::format("tensor {} of type u8", name),
                found.type_name());
  }
  return found;
}

std::vector<float> WeightLoader::vector(const std::string& name, int n) {
  const TensorView& view = tensor(name, {n});
  std::vector<float> values;
  if (reading_) {
    values.resize(static_cast<std::size_t>(n));
    decode_rows(view, 0, 1, values);
  }
  return values;
}

std::vector<float> WeightLoader::filter(const std::string& name, int n_channels, int n_taps) {
  const TensorView* const found = source_.find(name);
  const bool is_flat = found != nullptr && found->shape.size() == 2;
  const TensorView& view =
      is_flat ? tensor(name, {n_channels, n_taps}) : tensor(name, {n_channels, 1, n_taps});
  if (!reading_) return {};
  const auto n = static_cast<std::size_t>(n_channels);
  const auto taps = static_cast<std::size_t>(n_taps);
  // Rows of a three-dimensional tensor are along its last dimension as well.
  std::vector<float> stored(n * taps);
  decode_rows(view, 0, n_channels, stored);
  return transposed(stored, n, taps);
}

Linear WeightLoader::linear(const std::string& name, int n_columns, int k, Bias bias,
                            int interleaved_head_dim) {
  return linear_rows(name, n_columns, k, bias, {.interleaved_head_dim = interleaved_head_dim});
}

Linear WeightLoader::linear_rows(const std::string& name, int n_stored, int k, Bias bias,
                                 const StoredRows& rows) {
  return linear_rows(name, n_stored, k, bias, rows, Held::packed);
}

Matrix WeightLoader::expert(const std::string& name, int n_columns, int k) {
  return linear_rows(name, n_columns, k, Bias::never, {}, Held::as_experts).matrix;
}

Linear WeightLoader::linear_rows(const std::string& name, int n_stored, int k, Bias bias,
                                 const StoredRows& rows, Held held) {
  if (auto quantised = quantised_rows(name, n_stored, k, bias, rows, held)) {
    return *std::move(quantised);
  }
  const TensorView& view = rows.turned ? tensor(name + ".weight", {k, n_stored})
                                       : tensor(name + ".weight", {n_stored, k});
  Linear result;
  result.bias = bias_of(name, n_stored, bias, rows);
  const WeightKind native = native_kind(view.type);
  const StoredWeights stored(view, kind_for(native), rows);
  result.matrix = hold(stored, native, held);
  release(view, held);
  const auto share = static_cast<double>(stored.n_rows()) / static_cast<double>(n_stored);
  advance(static_cast<std::size_t>(static_cast<double>(view.data.size()) * share));
  return result;
}

Matrix WeightLoader::f32_matrix(const std::string& name, int n_columns, int k) {
  return pack_f32(tensor(name + ".weight", {n_columns, k}), {n_columns, k});
}

Matrix WeightLoader::f32_row(const std::string& name, int k) {
  const TensorView* const found = source_.find(name + ".weight");
  if (found == nullptr || found->shape.size() != 1) return f32_matrix(name, 1, k);
  return pack_f32(tensor(name + ".weight", {k}), {1, k});
}

Matrix WeightLoader::pack_f32(const TensorView& view, std::vector<std::int64_t> shape) {
  advance(view.data.size());
  if (!reading_) return {};
  TensorView shaped = view;
  shaped.shape = std::move(shape);
  Matrix matrix =
      Matrix::pack(StoredWeights(shaped, WeightKind::f32, 0), *options_.table, options_.n_threads);
  source_.release(view);
  return matrix;
}

std::vector<Matrix> WeightLoader::stacked(const std::string& name, int n, int n_stored, int k,
                                          const StoredRows& rows) {
  const TensorView& view =
      rows.turned ? tensor(name, {n, k, n_stored}) : tensor(name, {n, n_stored, k});
  const WeightKind native = native_kind(view.type);
  const std::int64_t n_rows = rows.n > 0 ? rows.n : n_stored;
  const std::size_t n_bytes = view.data.size() / static_cast<std::size_t>(n);
  std::vector<Matrix> matrices;
  for (int i = 0; i < n; ++i) {
    matrices.push_back(
        hold(StoredWeights(part_of(view, i), kind_for(native), rows), native, Held::as_experts));
    const auto share = static_cast<double>(n_rows) / n_stored;
    advance(static_cast<std::size_t>(static_cast<double>(n_bytes) * share));
  }
  release(view, Held::as_experts);
  return matrices;
}

std::vector<Matrix> WeightLoader::stacked_heads(const std::string& name, int n, int n_columns,
                                                int k) {
  const TensorView& view = tensor(name, {n, n_columns, k});
  const WeightKind kind = kind_of_heads(native_kind(view.type));
  advance(view.data.size());
  std::vector<Matrix> matrices(static_cast<std::size_t>(n));
  if (!reading_) return matrices;
  for (int i = 0; i < n; ++i) {
    matrices[static_cast<std::size_t>(i)] = Matrix::pack(
        StoredWeights(part_of(view, i), kind, StoredRows{}), *options_.table, options_.n_threads);
  }
  source_.release(view);
  return matrices;
}

std::vector<Matrix> WeightLoader::parts_of_heads(const std::string& name, int k,
                                                 const HeadRows& rows) {
  const int n_stored = rows.n * rows.n_stored;
  std::unique_ptr<const WeightReader> stored;
  const TensorView* view = nullptr;
  if (options_.quantisation) {
    QuantisedTensors tensors = find_quantised(source_, *options_.quantisation, name, n_stored, k);
    view = tensors.codes;
    if (view != nullptr) {
      asked_.insert(tensors.names.begin(), tensors.names.end());
      stored = std::make_unique<QuantisedMatrix>(std::move(tensors), WeightKind::f32, StoredRows{});
    }
  }
  if (view == nullptr) {
    view = &tensor(name + ".weight", {n_stored, k});
    stored = std::make_unique<StoredWeights>(*view, WeightKind::f32, StoredRows{});
  }
  const bool is_bf16 = view->type == ElementType::bf16;
  const WeightKind kind = kind_of_heads(is_bf16 ? WeightKind::bf16 : WeightKind::f32);
  advance(view->data.size() * static_cast<std::size_t>(rows.n_rows) /
          static_cast<std::size_t>(rows.n_stored));
  std::vector<Matrix> matrices(static_cast<std::size_t>(rows.n));
  if (!reading_) return matrices;
  for (int i = 0; i < rows.n; ++i) {
    WeightRows read;
    stored->read(std::int64_t{i} * rows.n_stored + rows.first, rows.n_rows, read);
    RowsInMemory its =
        rows.transposed ? RowsInMemory(transposed(read.f32, static_cast<std::size_t>(rows.n_rows),
                                                  static_cast<std::size_t>(k)),
                                       k, rows.n_rows, kind)
                        : RowsInMemory(std::move(read.f32), rows.n_rows, k, kind);
    matrices[static_cast<std::size_t>(i)] = Matrix::pack(its, *options_.table, options_.n_threads);
  }
  source_.release(*view);
  return matrices;
}

std::vector<Matrix> WeightLoader::stacked_blocks(const std::string& name, int n, int n_stored,
                                                 int k, const StoredRows& rows) {
  if (k % Mxfp4Blocks::kBlock != 0) {
    throw Error(kOperation, source_.description(),
                fmt::format("{}_blocks of rows of whole blocks of {}", name, Mxfp4Blocks::kBlock),
                fmt::format("rows of {}", k));
  }
  const std::int64_t n_blocks = k / Mxfp4Blocks::kBlock;
  const TensorView& codes = bytes(name + "_blocks", {n, n_stored, n_blocks, Mxfp4Blocks::kBytes});
  const TensorView& scales = bytes(name + "_scales", {n, n_stored, n_blocks});
  const std::int64_t n_rows = rows.n > 0 ? rows.n : n_stored;
  std::vector<Matrix> matrices;
  for (int i = 0; i < n; ++i) {
    const Mxfp4Blocks stored(codes, scales, kind_for(WeightKind::mxfp4),
                             {.first_row = std::int64_t{i} * n_stored, .n_rows = n_rows, .k = k},
                             rows);
    matrices.push_back(hold(stored, WeightKind::mxfp4, Held::as_experts));
    advance(static_cast<std::size_t>(n_rows * n_blocks * (Mxfp4Blocks::kBytes + 1)));
  }
  release(codes, Held::as_experts);
  release(scales, Held::as_experts);
  return matrices;
}

std::vector<float> WeightLoader::stacked_vectors(const std::string& name, int n, int n_stored,
                                                 const StoredRows& rows) {
  const TensorView& view = tensor(name, {n, n_stored});
  std::vector<float> all;
  if (!reading_) return all;
  std::vector<float> stored(static_cast<std::size_t>(n_stored));
  for (int i = 0; i < n; ++i) {
    decode_rows(view, i, 1, stored);
    const std::vector<float> its = chosen(stored, rows);
    all.insert(all.end(), its.begin(), its.end());
  }
  return all;
}

// Returns nothing if the matrix is stored plain.
std::optional<Linear> WeightLoader::quantised_rows(const std::string& name, int n_stored, int k,
                                                   Bias bias, const StoredRows& rows, Held held) {
  if (!options_.quantisation || rows.turned) return std::nullopt;
  QuantisedTensors tensors = find_quantised(source_, *options_.quantisation, name, n_stored, k);
  if (tensors.codes == nullptr) return std::nullopt;
  asked_.insert(tensors.names.begin(), tensors.names.end());
  const TensorView& codes = *tensors.codes;
  Linear result;
  result.bias = bias_of(name, n_stored, bias, rows);
  const WeightKind native = native_kind(tensors);
  const QuantisedMatrix stored(std::move(tensors), kind_for(native), rows);
  result.matrix = hold(stored, native, held);
  release(codes, held);
  const auto share = static_cast<double>(stored.n_rows()) / static_cast<double>(n_stored);
  advance(static_cast<std::size_t>(static_cast<double>(codes.data.size()) * share));
  return result;
}

std::vector<float> WeightLoader::bias_of(const std::string& name, int n_stored, Bias bias,
                                         const StoredRows& rows) {
  const std::string bias_name = name + ".bias";
  const bool has_bias = has(bias_name);
  if (bias == Bias::never && has_bias) {
    throw Error(kOperation, source_.description(),
                fmt::format("no tensor {} (the config says there is no bias)", bias_name), "one");
  }
  if (!has_bias && bias != Bias::always) return {};
  std::vector<float> values = vector(bias_name, n_stored);
  return reading_ ? chosen(values, rows) : values;
}

template <typename Reader>
Matrix WeightLoader::hold(Reader reader, WeightKind native, Held held) {
  if (!reading_) {
    const WeightKind kind = options_.kind.value_or(native);
    has_quantized_ |= ActivationForms::of(kind, *options_.table).int8;
    has_bf16_ |= kind == WeightKind::bf16;
    return {};
  }
  activation_forms_ |= ActivationForms::of(reader.kind(), *options_.table);
  if (options_.share || (held == Held::as_experts && options_.experts_in_file)) {
    return Matrix::in_file(std::make_shared<const Reader>(std::move(reader)), *options_.table);
  }
  return Matrix::pack(reader, *options_.table, options_.n_threads);
}

// Otherwise the model would be in memory twice.
void WeightLoader::release(const TensorView& view, Held held) const {
  const bool stays = held == Held::as_experts && options_.experts_in_file;
  if (reading_ && !stays) source_.release(view);
}

std::vector<std::string> WeightLoader::unread_below(std::string_view prefix) const {
  std::vector<std::string> names;
  for (const TensorView& tensor : source_.tensors()) {
    if (!tensor.name.starts_with(prefix) || !is_weight_type(tensor.type)) continue;
    if (asked_.count(tensor.name) == 0 && !follows_from_config(tensor.name)) {
      names.push_back(tensor.name);
    }
  }
  return names;
}

void WeightLoader::require_all_read_below(std::string_view prefix) const {
  const std::vector<std::string> unread = unread_below(prefix);
  if (unread.empty()) return;
  throw Error(kOperation, source_.description(),
              fmt::format("only weights that this build knows below {}", prefix), unread.front());
}

// In a quantised model nothing runs as bf16: some tables round bf16 products differently, and its
// bits must be equal on all tables. So tensors that the file left unquantised (often the head) are
// widened to f32.
WeightKind WeightLoader::kind_for(WeightKind native) const {
  const WeightKind kind = options_.kind.value_or(native);
  return kind == WeightKind::bf16 && has_quantized_ ? WeightKind::f32 : kind;
}

WeightKind WeightLoader::kind_of_heads(WeightKind native) {
  const bool is_asked = options_.kind == WeightKind::f32 || options_.kind == WeightKind::bf16;
  const WeightKind kind = is_asked ? *options_.kind : native;
  if (!reading_) {
    has_quantized_ |= ActivationForms::of(kind, *options_.table).int8;
    has_bf16_ |= kind == WeightKind::bf16;
    return kind;
  }
  const WeightKind held = kind == WeightKind::bf16 && has_quantized_ ? WeightKind::f32 : kind;
  activation_forms_ |= ActivationForms::of(held, *options_.table);
  return held;
}

void WeightLoader::advance(std::size_t n_bytes) {
  n_bytes_seen_ += n_bytes;
  if (reading_ && options_.progress) {
    options_.progress(static_cast<double>(n_bytes_seen_) / static_cast<double>(n_bytes_total_));
  }
}

}  // namespace outrider
