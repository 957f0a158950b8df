#include "model/weight_loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string_view>

#include "model/stored_weights.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr std::string_view kOperation = "load weights";

// Biases change places as the rows they belong to (stored_weights.h).
std::vector<float> half_split(const std::vector<float>& interleaved, int head_dim) {
  const auto width = static_cast<std::size_t>(head_dim);
  std::vector<float> split(interleaved.size());
  for (std::size_t head = 0; head < interleaved.size(); head += width) {
    for (std::size_t i = 0; i < width / 2; ++i) {
      split[head + i] = interleaved[head + 2 * i];
      split[head + width / 2 + i] = interleaved[head + 2 * i + 1];
    }
  }
  return split;
}

// Old checkpoints hold RoPE's frequencies, GPT-2's and GPT-NeoX's their causal masks as well.
bool follows_from_config(std::string_view name) {
  constexpr std::string_view kEndings[] = {".rotary_emb.inv_freq", ".attn.bias",
                                           ".attn.masked_bias", ".attention.bias",
                                           ".attention.masked_bias"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [name](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace

const TensorView& WeightLoader::tensor(const std::string& name,
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
  if (!is_weight_type(found->type)) {
    throw Error(kOperation, source_.description(),
                fmt::format("tensor {} of a float type or one of GGUF's quantised ones", name),
                found->type_name());
  }
  asked_.insert(name);
  return *found;
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

Linear WeightLoader::linear(const std::string& name, int n_columns, int k, Bias bias,
                            int interleaved_head_dim) {
  const std::string bias_name = name + ".bias";
  const bool has_bias = has(bias_name);
  if (bias == Bias::never) refuse_bias(name);

  const TensorView& view = tensor(name + ".weight", {n_columns, k});
  Linear result;
  if (has_bias || bias == Bias::always) {
    result.bias = vector(bias_name, n_columns);
    if (interleaved_head_dim > 0 && reading_) {
      result.bias = half_split(result.bias, interleaved_head_dim);
    }
  }
  result.matrix = matrix(view, interleaved_head_dim);
  if (reading_) source_.release(view);  // or the model would stand in memory twice
  advance(view.data.size());
  return result;
}

std::vector<Linear> WeightLoader::stacked(const std::string& name,
                                          const std::vector<int>& n_columns, int k) {
  refuse_bias(name);
  const std::int64_t n_rows = std::accumulate(n_columns.begin(), n_columns.end(), std::int64_t{0});
  const TensorView& view = tensor(name + ".weight", {n_rows, k});
  const std::size_t row_bytes = view.data.size() / static_cast<std::size_t>(n_rows);
  std::vector<Linear> parts;
  std::size_t first = 0;
  for (const int n : n_columns) {
    const auto rows = static_cast<std::size_t>(n);
    const TensorView part{.name = view.name,
                          .type = view.type,
                          .shape = {n, k},
                          .data = view.data.subspan(first * row_bytes, rows * row_bytes)};
    parts.push_back({.matrix = matrix(part, 0), .bias = {}});
    first += rows;
  }
  if (reading_) source_.release(view);
  advance(view.data.size());
  return parts;
}

void WeightLoader::refuse_bias(const std::string& name) const {
  const std::string bias_name = name + ".bias";
  if (!has(bias_name)) return;
  throw Error(kOperation, source_.description(),
              fmt::format("no tensor {} (the config says there is no bias)", bias_name), "one");
}

// Empty in the first walk, which notes what kinds there are.
Matrix WeightLoader::matrix(const TensorView& view, int interleaved_head_dim) {
  if (!reading_) {
    const WeightKind kind = options_.kind.value_or(native_kind(view.type));
    has_quantized_ |= InputForms::of(kind, *options_.table).quantized;
    has_bf16_ |= kind == WeightKind::bf16;
    return {};
  }
  const StoredWeights stored(view, kind_for(view), interleaved_head_dim);
  input_forms_ |= InputForms::of(stored.kind(), *options_.table);
  return Matrix::pack(stored, *options_.table, options_.n_threads);
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

// In a quantised model nothing runs as bf16: some tables round bf16 products in ways of their own,
// and its bits must be the same on every table. So what the file left unquantised (often the head)
// is widened to f32.
WeightKind WeightLoader::kind_for(const TensorView& view) const {
  const WeightKind kind = options_.kind.value_or(native_kind(view.type));
  return kind == WeightKind::bf16 && has_quantized_ ? WeightKind::f32 : kind;
}

void WeightLoader::advance(std::size_t n_bytes) {
  n_bytes_seen_ += n_bytes;
  if (reading_ && options_.progress) {
    options_.progress(static_cast<double>(n_bytes_seen_) / static_cast<double>(n_bytes_total_));
  }
}

}  // namespace outrider
