// SPDX-License-Identifier: Apache-2.0
// The predicted cost of a pass: the formula of outrider/speed_plan.h.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/tensor_source.h"
#include "kernels/table.h"
#include "measure/plan/measured_device.h"
#include "outrider/error.h"
#include "outrider/speed_plan.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "plan speed";

// Keys, values, and rows stored between ops are bf16 on a public device.
constexpr double kBytesOfActivation = 2;
// Logits are floats.
constexpr double kBytesOfLogit = 4;

enum class Arithmetic { f32, bf16, fp8, int8 };

struct WeightType {
  std::string_view name;
  double n_bytes;  // per weight
  Arithmetic arithmetic;
};

constexpr double kGroupOfWeights = 32;
constexpr std::array<WeightType, 6> kPlainTypes = {{
    {"f32", 4, Arithmetic::f32},
    {"f16", 2, Arithmetic::bf16},
    {"bf16", 2, Arithmetic::bf16},
    {"fp8", 1, Arithmetic::fp8},
    // A 16-bit scale per group; int4 also has a minimum (src/kernels/table.h).
    {"int8", 1 + 2 / kGroupOfWeights, Arithmetic::int8},
    {"int4", 0.5 + 4 / kGroupOfWeights, Arithmetic::int8},
}};
// Their products are int8 here: inputs are rounded, sums are exact.
constexpr ElementType kBlockTypes[] = {ElementType::q8_0, ElementType::q6_k,   ElementType::q5_k,
                                       ElementType::q5_1, ElementType::q5_0,   ElementType::q4_k,
                                       ElementType::q4_1, ElementType::q4_0,   ElementType::q3_k,
                                       ElementType::q2_k, ElementType::iq4_xs, ElementType::iq4_nl,
                                       ElementType::mxfp4};

WeightType find_type(std::string_view name) {
  for (const WeightType& type : kPlainTypes) {
    if (type.name == name) return type;
  }
  for (const ElementType type : kBlockTypes) {
    if (name_of(type) != name) continue;
    const double n_bytes =
        static_cast<double>(block_bytes(type)) / static_cast<double>(block_elements(type));
    return {name_of(type), n_bytes, Arithmetic::int8};
  }
  throw UsageError(kOperation, "weights",
                   fmt::format("one of {}", fmt::join(known_weights(), ", ")),
                   name.empty() ? std::string("nothing") : std::string(name));
}

double peak_of(const Device& device, Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::f32:
      // TF32, half of bf16 in the sheets of A100, H100, L40S and MI300X.
      return device.bf16_ops_per_second / 2;
    case Arithmetic::fp8:
      return std::max(device.fp8_ops_per_second, device.bf16_ops_per_second);
    case Arithmetic::int8:
      return std::max(device.int8_ops_per_second, device.bf16_ops_per_second);
    case Arithmetic::bf16:
      break;
  }
  return device.bf16_ops_per_second;
}

// Seconds per weight in a pass of n rows, if the device was measured with that type.
std::optional<double> measured_product(const Device& device, std::string_view type, double n_rows) {
  const ProductRate* below = nullptr;
  const ProductRate* before = nullptr;  // the one below `below`
  for (const ProductRate& rate : device.products) {
    if (rate.type != type) continue;
    if (rate.rows >= n_rows && below != nullptr) {
      const double share = (n_rows - below->rows) / (rate.rows - below->rows);
      return below->seconds_per_weight +
             share * (rate.seconds_per_weight - below->seconds_per_weight);
    }
    if (rate.rows >= n_rows) return rate.seconds_per_weight;
    before = below;
    below = &rate;
  }
  if (below == nullptr) return std::nullopt;
  if (before == nullptr) return below->seconds_per_weight * n_rows / below->rows;
  // More rows than measured: extrapolates the last slope.
  const double slope =
      (below->seconds_per_weight - before->seconds_per_weight) / (below->rows - before->rows);
  return below->seconds_per_weight + slope * (n_rows - below->rows);
}

// One kind of work: the bytes read and the operations.
struct Work {
  double n_bytes = 0;
  double n_ops = 0;
};

class PassSum {
 public:
  PassSum(const Device& device, double n_rows) : device_(device), n_rows_(n_rows) {}

  // Adds weights of one type: those read, and the number that a row multiplies.
  void add_products(const WeightShare& read, double n_multiplied) {
    const Work work{.n_bytes = read.n_bytes, .n_ops = 2 * n_multiplied * n_rows_};
    sum_.weight_bytes += work.n_bytes;
    sum_.product_ops += work.n_ops;
    if (const auto seconds = measured_product(device_, read.type, n_rows_)) {
      const double total = *seconds * read.n_weights;
      const double memory = work.n_bytes / device_.bandwidth_bytes_per_second;
      sum_.products += total;
      if (memory * 2 >= total) sum_.memory_bound += total;
      return;
    }
    sum_.products += slower(work, peak_of(device_, find_type(read.type).arithmetic));
  }

  void add_attention(const Work& work, double n_kv_elements) {
    sum_.cache_bytes += work.n_bytes;
    sum_.attention_ops += work.n_ops;
    if (device_.kv_elements_per_second > 0 && device_.attention_ops_per_second > 0) {
      // Here keys and values are first converted to the multiplied form, then multiplied.
      sum_.attention += n_kv_elements / device_.kv_elements_per_second +
                        work.n_ops / device_.attention_ops_per_second;
      return;
    }
    sum_.attention += slower(work, device_.bf16_ops_per_second);
  }

  void add_rows(double n_elements) {
    if (device_.row_elements_per_second > 0) {
      sum_.rows += n_elements / device_.row_elements_per_second;
      return;
    }
    sum_.rows += slower({.n_bytes = n_elements * kBytesOfActivation}, 0);
  }

  void add_logits(double n_logits) {
    sum_.logits += slower({.n_bytes = n_logits * kBytesOfLogit}, 0);
  }

  PassSeconds finish() {
    sum_.fixed = device_.fixed_seconds;
    return sum_;
  }

 private:
  double slower(const Work& work, double ops_per_second) {
    const double memory = work.n_bytes / device_.bandwidth_bytes_per_second;
    const double arithmetic = work.n_ops > 0 ? work.n_ops / ops_per_second : 0;
    if (memory >= arithmetic) sum_.memory_bound += memory;
    return std::max(memory, arithmetic);
  }

  const Device& device_;
  double n_rows_;
  PassSeconds sum_;
};

double whole_chunks(double n_keys) {
  return std::ceil(n_keys / kernels::kChunkKeys) * kernels::kChunkKeys;
}

void require_at_least(const char* what, int value, int least) {
  if (value >= least) return;
  throw UsageError(kOperation, what, fmt::format("{} or more", least), fmt::format("{}", value));
}

void check_shape(const ModelShape& shape) {
  require_at_least("layers", shape.n_layers, 1);
  require_at_least("dim", shape.dim, 1);
  require_at_least("heads", shape.n_heads, 1);
  require_at_least("kv heads", shape.n_kv_heads, 1);
  require_at_least("head dim", shape.head_dim, 1);
  require_at_least("hidden dim", shape.hidden_dim, 1);
  require_at_least("vocabulary", shape.vocabulary_size, 1);
  if (shape.n_experts > 0) require_at_least("active experts", shape.n_active, 1);
  require_at_least("experts", shape.n_experts, shape.n_active);
}

void check_device(const Device& device) {
  if (device.bandwidth_bytes_per_second > 0 && device.bf16_ops_per_second > 0) return;
  throw UsageError(kOperation, fmt::format("device {}", device.name), "bandwidth and bf16 above 0",
                   fmt::format("{:g} bytes/s and {:g} operations/s",
                               device.bandwidth_bytes_per_second, device.bf16_ops_per_second));
}

}  // namespace

std::vector<std::string> known_weights() {
  std::vector<std::string> names;
  names.reserve(kPlainTypes.size() + std::size(kBlockTypes));
  for (const WeightType& type : kPlainTypes) names.emplace_back(type.name);
  for (const ElementType type : kBlockTypes) names.emplace_back(name_of(type));
  return names;
}

// The numbers that one row reads and writes between products: per layer two norms and two residual
// sums; queries, keys and values when stored, and attention's sums; the gate's three vectors.
double row_elements(const ModelShape& shape) {
  const double heads = 2.0 * (shape.n_heads + shape.n_kv_heads) * shape.head_dim;
  const double hidden = 3.0 * shape.hidden_dim * std::max(shape.n_active, 1);
  return shape.n_layers * (4.0 * shape.dim + heads + hidden) + 2.0 * shape.dim;
}

double bytes_per_weight(std::string_view type) { return find_type(type).n_bytes; }

PassSeconds pass_seconds(const ModelShape& shape, const PassOnPaper& pass, const Device& device) {
  require_at_least("rows", pass.rows, 1);
  require_at_least("context", pass.context, 0);
  require_at_least("batch", pass.batch, 1);
  check_shape(shape);
  check_device(device);
  const double n_rows = static_cast<double>(pass.rows) * pass.batch;
  PassSum sum(device, n_rows);

  if (pass.weights.empty() && !shape.stored.empty()) {
    for (const WeightShare& stored : shape.stored) sum.add_products(stored, stored.n_weights);
  } else {
    const std::string type = pass.weights.empty() ? "bf16" : pass.weights;
    const double n_bytes = bytes_per_weight(type);
    const auto add = [&](double n_read, double n_multiplied) {
      sum.add_products({.type = type, .n_weights = n_read, .n_bytes = n_read * n_bytes},
                       n_multiplied);
    };
    const double mlp = shape.mlp_weights();
    const double others = shape.attention_weights() + shape.head_weights();
    if (shape.n_experts > 0) {
      add(others, others);
      const double each = mlp / shape.n_experts;
      add(each * expected_experts(shape, n_rows), each * shape.n_active);
    } else {
      add(others + mlp, others + mlp);
    }
  }

  // Earlier tokens are read once for all rows of a sequence. A row also attends to the draft's
  // tokens before it and to itself: in a chain, half of them on average. This machine's kernels
  // compute whole chunks, and read positions that not all rows share row by row.
  const double kv_width = 2.0 * shape.n_kv_heads * shape.head_dim;
  const double before = shape.positions_read(pass.context);
  const double among = static_cast<double>(shape.n_layers) * (pass.rows + 1) / 2;
  double weighed = before + among;
  double n_kv_elements = pass.batch * before * kv_width;
  if (device.is_measured()) {
    weighed = before + static_cast<double>(shape.n_layers) * whole_chunks(among / shape.n_layers);
    n_kv_elements += n_rows * among * kv_width;
  }
  sum.add_attention({.n_bytes = n_kv_elements * kBytesOfActivation,
                     .n_ops = 4.0 * shape.n_heads * shape.head_dim * weighed * n_rows},
                    n_kv_elements);
  sum.add_rows(row_elements(shape) * n_rows);
  sum.add_logits(shape.vocabulary_size * n_rows);
  return sum.finish();
}

}  // namespace outrider
